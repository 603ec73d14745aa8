// A supervisor and its sub-agents on one engine: what they share is computed once, they decode together,
// and whoever waits never blocks whom it waits for. Which tools are called is scripted; tokens, cells and
// batches are the engine's own, and every row is counted twice (`audit`).
import { execFile } from "node:child_process";
import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import OpenAI from "openai";
import { afterEach, expect, test } from "vitest";
import type { EngineStep } from "../../src/engine/types.ts";
import type { AgentsJson } from "../support/agents.ts";
import { serveCommand } from "../support/command-line.ts";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";
import { metric } from "../support/metric.ts";

const question = "Ask both to look at the harbour.";
const tasks = [
  "Look at the harbour from the left.",
  "Look at the harbour from the right.",
] as const;
const sharedTokens = 1500;
/** Longer than the chunks in which a prompt is computed. */
const answerOf = (side: string): string =>
  `From the ${side} I see ${"boats and ".repeat(150)}water.`;
const final = "Both see boats.";

/** About `sharedTokens` tokens, and some more. */
const handbook = Array.from(
  { length: 150 },
  (_, i) => `Rule ${i}: look and say what you see.`,
).join("\n");

const team: AgentsJson = {
  supervisor: "boss",
  agents: {
    boss: { description: "Asks others", instructions: "You ask others." },
    left: { description: "Looks from the left", instructions: handbook },
    right: { description: "Looks from the right", instructions: handbook },
  },
};

let server: ScriptedServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function start(engine: object, agents: AgentsJson = team): Promise<ScriptedServer> {
  // A second thread would wait for whatever else runs on this machine.
  server = await startScriptedServer({ agents, engine: { threads: 1, ...engine } });
  const delegations = ["left", "right"].map((agent, i) =>
    callText("delegate", { agent, task: tasks[i] }),
  );
  await server.script(question, [delegations.join("\n"), final]);
  await server.script(tasks[0], [answerOf("left")]);
  await server.script(tasks[1], [answerOf("right")]);
  return server;
}

async function ask({ client }: ScriptedServer): Promise<string | null | undefined> {
  const completion = await client.chat.completions.create({
    model: "boss",
    messages: [{ role: "user", content: question }],
  });
  expect(completion.choices[0]?.finish_reason).toBe("stop");
  return completion.choices[0]?.message.content;
}

test("two sub-agents share 1,500 tokens: computed once, and both decode in the same batches", async () => {
  const running = await start({ contextSize: 4096, parallel: 4 });
  const steps: EngineStep[] = [];
  running.engine.onStep((step) => steps.push(step));
  const before = await running.settledStats();
  expect(await ask(running)).toBe(final);
  const after = await running.settledStats();

  const prompt = after.promptTokens - before.promptTokens;
  const cached = after.cachedTokens - before.cachedTokens;
  const resumed = after.resumedTokens - before.resumedTokens;
  const prefilled = after.prefilledTokens - before.prefilledTokens;
  const generated = after.generatedTokens - before.generatedTokens;
  const instructions = (await running.engine.tokenize(handbook)).length;
  expect(instructions).toBeGreaterThan(sharedTokens);
  // One of the two found the other's instructions; of the rest each token was computed once.
  expect(cached).toBeGreaterThanOrEqual(instructions);
  expect(prefilled).toBe(prompt - cached + resumed);
  expect(prefilled - resumed).toBeLessThan(instructions + 1000);
  expect(after.recomputedTokens).toBe(0);
  // As the audit around the backend counts. The boss ends two turns, each sub-agent one; the last token of
  // a turn is computed with what follows it, or never.
  expect(after.auditedRows - before.auditedRows).toBe(prefilled + generated - 4);
  expect(await metric(running, "fermata_prefilled_tokens_total")).toBe(after.prefilledTokens);
  expect(await metric(running, "fermata_cached_tokens_total")).toBe(after.cachedTokens);

  // They decode side by side: from when both do until one ends, each step has a row of each, and that is most
  // of the time. Now and then what they said so far is prefilled into the held boss; all other steps are one
  // pass over the weights.
  const answers = await Promise.all(
    ["left", "right"].map(async (side) => (await running.engine.tokenize(answerOf(side))).length),
  );
  const together = steps.filter(({ decodeRows }) => decodeRows === 2);
  expect(together.length).toBeGreaterThan(Math.min(...answers) * 0.5);
  const between = steps.slice(steps.indexOf(together[0]!), steps.indexOf(together.at(-1)!) + 1);
  expect(between).toEqual(together);
  const alone = together.filter(({ prefillRows }) => prefillRows === 0);
  expect(alone.length).toBeGreaterThan(0);
  expect(alone.every(({ microBatches }) => microBatches === 1)).toBe(true);
  expect(await running.engine.checkIntegrity()).toBe("");
});

test("one sequence at a time: the supervisor is held while its agents run one after the other", async () => {
  const running = await start({ contextSize: 4096, parallel: 1, retainedSlots: 2 });
  expect(await ask(running)).toBe(final);
  const stats = await running.settledStats();
  expect(stats.prefilledTokens).toBe(stats.promptTokens - stats.cachedTokens + stats.resumedTokens);
  expect(stats.recomputedTokens).toBe(0);
  expect(await running.engine.checkIntegrity()).toBe("");
});

test("every slot is held: whoever waits leaves for memory, and nothing is computed again", async () => {
  const deep: AgentsJson = {
    supervisor: "boss",
    agents: {
      boss: { description: "Asks", agents: ["middle"] },
      middle: { description: "Asks on", agents: ["left"] },
      left: { description: "Looks", instructions: "You look." },
    },
  };
  const running = await start({ contextSize: 2048, parallel: 1, retainedSlots: 0 }, deep);
  await running.script(question, [
    callText("delegate", { agent: "middle", task: "Go on." }),
    final,
  ]);
  await running.script("Go on.", [
    callText("delegate", { agent: "left", task: tasks[0] }),
    "Boats.",
  ]);
  const [first, second] = await Promise.all([ask(running), ask(running)]);
  expect([first, second]).toEqual([final, final]);
  const stats = await running.settledStats();
  expect(stats.recomputedTokens).toBe(0);
  expect(stats.ramRestores).toBeGreaterThan(0);
  expect(await running.engine.checkIntegrity()).toBe("");
});

test("an agent with a model of its own answers on an engine of its own, which is measured", async () => {
  const folder = await mkdtemp(join(tmpdir(), "fermata-agents-"));
  const shipped = fileURLToPath(new URL("../../models/fermata-small.gguf", import.meta.url));
  await copyFile(shipped, join(folder, "second.gguf"));
  const agents = {
    boss: { description: "Plans" },
    helper: { description: "Helps", model: "second.gguf" },
  };
  const file = join(folder, "agents.json");
  await writeFile(file, JSON.stringify({ supervisor: "boss", agents }));
  const served = await serveCommand("--store=none", "--ctx-size=2048", `--agents=${file}`);
  try {
    const client = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: "none" });
    const say = (model: string) =>
      client.chat.completions.create({
        model,
        messages: [{ role: "user", content: "Hello, who are you?" }],
        max_completion_tokens: 24,
        temperature: 0,
      });
    const [shippedAnswer, helper] = [await say("default"), await say("helper")];
    // The same weights: the same words.
    expect(helper.choices[0]!.message.content).toBe(shippedAnswer.choices[0]!.message.content);
    expect(helper.choices[0]!.message.content).not.toBe("");
    const text = await (await fetch(`${served.url}/metrics`)).text();
    const value = (name: string): number =>
      Number(
        text
          .split("\n")
          .find((line) => line.startsWith(`${name} `))
          ?.split(" ")[1],
      );
    for (const [label, { usage }] of [
      ["", shippedAnswer],
      ['{model="second"}', helper],
    ] as const) {
      expect(value(`fermata_generated_tokens_total${label}`)).toBe(usage!.completion_tokens);
      expect(value(`fermata_prompt_tokens_total${label}`)).toBe(usage!.prompt_tokens);
    }
  } finally {
    expect(await served.stop()).toBe(0);
    await rm(folder, { recursive: true });
  }
});

test("a file with a mistake ends the start with its place, in one line", async () => {
  const folder = await mkdtemp(join(tmpdir(), "fermata-agents-"));
  const file = join(folder, "agents.json");
  const agents = { boss: { description: "Plans", limits: { round: 3 } } };
  await writeFile(file, JSON.stringify({ supervisor: "boss", agents }));
  const failed = promisify(execFile)(
    process.execPath,
    ["dist/cli/main.js", "serve", "--port=0", "--store=none", `--agents=${file}`],
    { cwd: fileURLToPath(new URL("../..", import.meta.url)) },
  );
  await expect(failed).rejects.toMatchObject({
    code: 2,
    stderr: `fermata: Agents file ${file}: "agents.boss.limits.round" is not known; did you mean "rounds"?\n`,
  });
  await rm(folder, { recursive: true });
});
