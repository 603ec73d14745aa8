import { loadDist } from "./dist.mjs";
import { pairedRuns } from "./paired-runs.mjs";
import { callText, saying, storyOf } from "./scripted-turns.mjs";

const { Chat } = await loadDist("chat", "chat.js");
const { runToolLoop } = await loadDist("tools", "tool-loop.js");

/** Of a told result. */
const partCount = 40;
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function tool(call, readOnly = false) {
  const parameters = { type: "object", properties: { of: { type: "integer" } } };
  return { definition: { name: "tell", parameters }, server: "fake", readOnly, call };
}

/** A round of `calls` calls and an answer, written by a script; `onEvent` sees what happens. */
async function answer(engine, calls, toolInUse, onEvent) {
  const round = Array.from({ length: calls }, (_, at) => callText("tell", { of: at })).join("\n");
  const sampling = await saying(engine, [round, "It is told."]);
  const messages = [{ role: "user", content: "Tell me the story of the lantern." }];
  const request = { messages, sampling, stop: [], owner: "bench" };
  for await (const event of runToolLoop(new Chat(engine), request, [toolInUse])) onEvent(event);
}

/**
 * From the tool's end to the first token after it. `milliseconds` 0: the result comes whole; else it
 * is told in parts over this time.
 */
async function resumeAfter(engine, story, milliseconds) {
  const parts = milliseconds === 0 ? 0 : partCount;
  let ended;
  let rowsBefore;
  let resumed;
  const telling = tool(async (_args, { report }) => {
    // The glue is prefilled in both cases.
    await wait(200);
    const size = Math.ceil(story.length / Math.max(parts, 1));
    const begun = performance.now();
    for (let part = 0; part < parts; part++) {
      report({ type: "output", text: story.slice(part * size, (part + 1) * size) });
      await wait(Math.max(0, begun + ((part + 1) * milliseconds) / parts - performance.now()));
    }
    ended = performance.now();
    rowsBefore = engine.stats().prefilledTokens;
    return { content: story, isError: false };
  });
  await answer(engine, 1, telling, ({ type }) => {
    if (type !== "content" || ended === undefined) return;
    const rows = engine.stats().prefilledTokens - rowsBefore;
    resumed ??= { ttft: performance.now() - ended, rows, told: milliseconds };
  });
  return resumed;
}

/** A result that comes whole, and one that is told over 1.5x the time that its prefill takes. */
export async function measureToldResult(engine, { words, runs }) {
  const story = storyOf(words);
  const tokens = (await engine.tokenize(story)).length;
  return {
    name: `resume TTFT, a result of ${tokens} tokens told over 1.5x its prefill`,
    ...(await pairedRuns(runs, {
      plain: () => resumeAfter(engine, story, 0),
      early: ({ ttft }) => resumeAfter(engine, story, 1.5 * ttft),
    })),
  };
}

/** A round with two calls whose tools take so long: from the request to its first token after them. */
async function roundTime(engine, toolMilliseconds) {
  const begun = performance.now();
  let first;
  const slow = tool(async () => {
    await wait(toolMilliseconds);
    return { content: "told", isError: false };
  }, true);
  await answer(engine, 2, slow, ({ type }) => {
    if (type === "content") first ??= performance.now();
  });
  return { ttft: first - begun };
}

export async function measureReadOnlyTools(engine, { runs }) {
  return {
    name: "a round with two read-only tools of 0 s, and of 0.5 s",
    ...(await pairedRuns(runs, {
      plain: () => roundTime(engine, 0),
      early: () => roundTime(engine, 500),
    })),
  };
}
