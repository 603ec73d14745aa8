import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { distDir } from "../../setup/paths.mjs";
import { greedy } from "./timed-generation.mjs";

const load = async (...path) => await import(pathToFileURL(join(distDir, ...path)).href);
const { Chat } = await load("chat", "chat.js");
const { runToolLoop } = await load("tools", "tool-loop.js");

const end = "<|im_end|>";
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const words = ["harbour", "lantern", "keeper", "river", "letter", "garden", "captain", "bridge"];

function storyOf(count) {
  return Array.from({ length: count }, (_, at) => words[(at * 7 + (at >> 3)) % 8]).join(" ");
}

function tool(call, readOnly = false) {
  const parameters = { type: "object", properties: { of: { type: "integer" } } };
  return { definition: { name: "tell", parameters }, server: "fake", readOnly, call };
}

function callText(of) {
  return `<tool_call>\n{"name": "tell", "arguments": {"of": ${of}}}\n</tool_call>`;
}

/** A round of `calls` calls and an answer, written by a script; `onEvent` sees what happens. */
async function answer(engine, calls, toolInUse, onEvent) {
  const turn = Array.from({ length: calls }, (_, at) => callText(at)).join("\n");
  const sampling = { ...greedy, script: await engine.tokenize(`${turn}${end}It is told.${end}`) };
  const messages = [{ role: "user", content: "Tell me the story of the lantern." }];
  const request = { messages, sampling, stop: [], owner: "bench" };
  for await (const event of runToolLoop(new Chat(engine), request, [toolInUse])) onEvent(event);
}

/**
 * From the tool's end to the first token after it, in milliseconds. `milliseconds` 0: the result comes
 * whole; else it is told in parts over this time.
 */
async function resumeTtft(engine, story, milliseconds) {
  const parts = milliseconds === 0 ? 0 : 40;
  let ended;
  let first;
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
    return { content: story, isError: false };
  });
  await answer(engine, 1, telling, ({ type }) => {
    if (type === "content" && ended !== undefined) first ??= performance.now();
  });
  return first - ended;
}

/** A round with two calls whose tools take so long, from its first event to its last. */
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
  return first - begun;
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}

/** What early work saves: results told in parts, and tools that start while the round is written. */
export async function measureEarlyResults(Engine, options, { resultWords, runs }) {
  const engine = await Engine.load({ ...options, contextSize: 4096, parallel: 2 });
  const rows = [];
  await resumeTtft(engine, storyOf(50), 0);
  for (const count of resultWords) {
    const story = storyOf(count);
    const tokens = (await engine.tokenize(story)).length;
    const plain = [];
    const early = [];
    for (let run = 0; run < runs; run++) {
      plain.push(await resumeTtft(engine, story, 0));
      early.push(await resumeTtft(engine, story, 1.5 * median(plain)));
    }
    const name = `resume TTFT, a result of ${tokens} tokens told over 1.5x its prefill`;
    rows.push({ name, plain: median(plain), early: median(early) });
  }
  const plain = [];
  const early = [];
  for (let run = 0; run < runs; run++) {
    plain.push(await roundTime(engine, 0));
    early.push(await roundTime(engine, 500));
  }
  rows.push({
    name: "a round with two read-only tools of 0.5 s, and of 0 s",
    plain: median(plain),
    early: median(early),
  });
  const { extendedTokens, discardedTokens, recomputedTokens } = engine.stats();
  await engine.close();
  return { rows, extendedTokens, discardedTokens, recomputedTokens };
}
