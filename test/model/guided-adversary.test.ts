// Random weights at a high temperature, so that only the masks know what a call is.
import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Chat } from "../../src/chat/chat.ts";
import type { ChatRequest, ToolDefinition } from "../../src/chat/types.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { hermesCalls } from "../../src/guidance/call-syntax.ts";
import { Guide } from "../../src/guidance/guide.ts";
import type { Guidance } from "../../src/guidance/types.ts";
import { compileValidator } from "../../src/guidance/validator.ts";
import { bfclTools } from "../support/bfcl.ts";
import { loadTestEngine } from "../support/engine.ts";
import { writeRandomModel } from "../support/random-model.ts";
import { greedy } from "../support/sampling.ts";

// Each function once with FERMATA_ADVERSARY=all; else a sample that touches every kind of schema.
const stride = process.env["FERMATA_ADVERSARY"] === "all" ? 1 : 24;
const free: Guidance = { toolChoice: "auto", parallel: true, closeAtLimit: false };

let engine: Engine;
let chat: Chat;
let path: string;

beforeAll(async () => {
  path = writeRandomModel(7);
  engine = await loadTestEngine({ modelPath: path, contextSize: 1024, parallel: 4 });
  chat = new Chat(engine);
});

afterAll(async () => {
  await engine.close();
  rmSync(dirname(path), { recursive: true });
});

interface Tally {
  finished: number;
  cut: number;
  calls: number;
}

/** Checks all that holds of every answer. */
async function attack(
  tools: ToolDefinition[],
  seed: number,
  guidance: Guidance,
  tally: Tally,
): Promise<void> {
  const request: ChatRequest = {
    messages: [{ role: "user", content: "Go." }],
    tools,
    toolMode: "external",
    sampling: { ...greedy, temperature: 1.5, seed },
    stop: [],
    maxTokens: 160,
    owner: "adversary",
    guidance,
  };
  for await (const event of chat.generate(request)) {
    if (event.type !== "finish") continue;
    if (event.reason === "length") tally.cut += 1;
    else tally.finished += 1;
    // Of a round that is cut only whole calls are told.
    if (guidance.toolChoice === "required" && event.reason !== "length")
      expect(event.calls.length).toBeGreaterThan(0);
    for (const { name, arguments: text } of event.calls) {
      const tool = tools.find((candidate) => candidate.name === name);
      expect(tool, name).toBeDefined();
      const validate = compileValidator(tool!.parameters, "draft-2020-12");
      expect(validate(JSON.parse(text)), `${name} ${text}`).toBeNull();
      tally.calls += 1;
      if (guidance.parallel) await checkAuto(tools, name, text);
    }
    if (!guidance.parallel) expect(event.calls.length).toBeLessThan(2);
  }
}

/** What `required` wrote is also what `auto` takes once a call has begun, and nothing else. */
async function checkAuto(tools: ToolDefinition[], name: string, args: string): Promise<void> {
  const guide = new Guide({
    syntax: hermesCalls,
    markers: null,
    controls: [],
    tools,
    guidance: free,
    budget: 160,
  });
  const grammar = await engine.compileGrammar(guide.round(0, "no")!);
  const walk = async (call: string): Promise<boolean> =>
    grammar.check(await engine.tokenize(`Well.\n<tool_call>\n${call}\n</tool_call>`)).complete;
  expect(await walk(`{"name": "${name}", "arguments": ${args}}`)).toBe(true);
  expect(await walk(`{"name": "${name}x", "arguments": ${args}}`)).toBe(false);
  expect(await walk(`{"name": "${name}", "arguments": [${args}]}`)).toBe(false);
  expect(await walk(`{"name": "${name}", "arguments": ${args.slice(0, -1)}`)).toBe(false);
}

const functions = bfclTools().filter((_, index) => index % stride === 0);

async function attackAll(guide: (tools: ToolDefinition[]) => Guidance): Promise<Tally> {
  const tally: Tally = { finished: 0, cut: 0, calls: 0 };
  for (let at = 0; at < functions.length; at += 4) {
    const group = functions.slice(at, at + 4);
    await Promise.all(group.map((_, seed) => attack(group, at + seed, guide(group), tally)));
  }
  return tally;
}

test("required, and auto once a call has begun: what ends is a call of an offered tool that fits its schema", async () => {
  const { finished, calls } = await attackAll(() => ({ ...free, toolChoice: "required" }));
  expect(finished).toBeGreaterThan(functions.length / 4);
  expect(calls).toBeGreaterThanOrEqual(finished);
}, 3_600_000);

test("a named function is called once", async () => {
  const { finished, calls } = await attackAll((tools) => ({
    ...free,
    toolChoice: "required",
    allowed: [tools[0]!.name],
    parallel: false,
  }));
  expect(finished).toBeGreaterThan(functions.length / 4);
  // The limit may come between a call and the end of the turn.
  expect(calls).toBeGreaterThanOrEqual(finished);
}, 3_600_000);

test("with closing asked for, nearly all end", async () => {
  const { finished, cut } = await attackAll(() => ({
    ...free,
    toolChoice: "required",
    closeAtLimit: true,
  }));
  expect(finished).toBeGreaterThanOrEqual(0.99 * (finished + cut));
}, 3_600_000);
