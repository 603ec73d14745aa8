// Random weights at a high temperature, so that only the masks know what a call is.
import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Chat } from "../../src/chat/chat.ts";
import type { ChatRequest, ToolDefinition } from "../../src/chat/types.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { Guidance } from "../../src/guidance/types.ts";
import { compileValidator } from "../../src/guidance/validator.ts";
import { bfclTools } from "../support/bfcl.ts";
import { loadTestEngine } from "../support/engine.ts";
import { hasMasks } from "../support/masks.ts";
import { writeRandomModel } from "../support/random-model.ts";
import { greedy } from "../support/sampling.ts";

// Each function once with FERMATA_ADVERSARY=all; else a sample that touches every kind of schema.
const stride = process.env["FERMATA_ADVERSARY"] === "all" ? 1 : 24;
const free: Guidance = { toolChoice: "auto", parallel: true, closeAtLimit: false };
const required: Guidance = { ...free, toolChoice: "required" };

let engine: Engine;
let chat: Chat;
let path: string;
/** Text, and a call's marker; then what no grammar allows, which the masks replace. Sampling goes on behind it. */
let begun: Int32Array[];

beforeAll(async () => {
  path = writeRandomModel(7);
  engine = await loadTestEngine({ modelPath: path, contextSize: 1024, parallel: 4 });
  chat = new Chat(engine);
  begun = await Promise.all(
    ["", '\n{"name": "no_such_tool", "arguments": ["'].map((more) =>
      engine.tokenize(`Well.\n<tool_call>${more}`),
    ),
  );
});

afterAll(async () => {
  await engine.close();
  rmSync(dirname(path), { recursive: true });
});

interface Attack {
  guidance: Guidance;
  /** The model has begun a call by itself. */
  isBegun?: boolean;
}

interface Tally {
  finished: number;
  cut: number;
  calls: number;
}

/** Checks all that holds of every answer. */
async function attack(
  tools: ToolDefinition[],
  seed: number,
  { guidance, isBegun = false }: Attack,
  tally: Tally,
): Promise<void> {
  const script = begun[seed % begun.length]!;
  const request: ChatRequest = {
    messages: [{ role: "user", content: "Go." }],
    tools,
    toolMode: "external",
    sampling: {
      ...greedy,
      temperature: 1.5,
      seed,
      ...(isBegun ? { script, samplesAfterScript: true } : {}),
    },
    stop: [],
    maxTokens: 160,
    owner: "adversary",
    guidance,
  };
  for await (const event of chat.generate(request)) {
    // Once a call has begun nothing is text.
    if (isBegun && event.type === "content") expect("Well.\n").toContain(event.text);
    if (event.type !== "finish") continue;
    if (event.reason === "length") tally.cut += 1;
    else {
      tally.finished += 1;
      expect(event.reason).toBe("tool_calls");
      expect(event.calls.length).toBeGreaterThan(0);
    }
    // Of a round that is cut only whole calls are told.
    for (const { name, arguments: text } of event.calls) {
      const tool = tools.find((candidate) => candidate.name === name);
      expect(tool, name).toBeDefined();
      if (guidance.allowed !== undefined) expect(guidance.allowed).toContain(name);
      const validate = compileValidator(tool!.parameters);
      expect(validate(JSON.parse(text)), `${name} ${text}`).toBeNull();
      tally.calls += 1;
    }
    if (!guidance.parallel) expect(event.calls.length).toBeLessThan(2);
  }
}

const functions = bfclTools().filter((_, index) => index % stride === 0);

/** Offers the functions four at a time, each group to four sequences side by side. */
async function attackAll(make: (tools: ToolDefinition[]) => Attack): Promise<Tally> {
  const tally: Tally = { finished: 0, cut: 0, calls: 0 };
  for (let at = 0; at < functions.length; at += 4) {
    const group = functions.slice(at, at + 4);
    await Promise.all(group.map((_, seed) => attack(group, at + seed, make(group), tally)));
  }
  if (stride === 1) console.log(expect.getState().currentTestName, tally);
  return tally;
}

test.skipIf(!hasMasks)(
  "required: what ends is a call of an offered tool that fits its schema",
  async () => {
    const { finished, calls } = await attackAll(() => ({ guidance: required }));
    expect(finished).toBeGreaterThan(functions.length / 4);
    expect(calls).toBeGreaterThanOrEqual(finished);
  },
  3_600_000,
);

test.skipIf(!hasMasks)(
  "auto, once a call has begun: the same",
  async () => {
    const { finished, calls } = await attackAll(() => ({ guidance: free, isBegun: true }));
    expect(finished).toBeGreaterThan(functions.length / 4);
    expect(calls).toBeGreaterThanOrEqual(finished);
  },
  3_600_000,
);

test.skipIf(!hasMasks)(
  "a named function is called once",
  async () => {
    const { finished, calls } = await attackAll((tools) => ({
      guidance: { ...required, allowed: [tools[0]!.name], parallel: false },
    }));
    expect(finished).toBeGreaterThan(functions.length / 4);
    // The limit may come between a call and the end of the turn.
    expect(calls).toBeGreaterThanOrEqual(finished);
  },
  3_600_000,
);

test.skipIf(!hasMasks).each<[string, () => Attack]>([
  ["required", () => ({ guidance: { ...required, closeAtLimit: true } })],
  [
    "auto, once a call has begun",
    () => ({ guidance: { ...free, closeAtLimit: true }, isBegun: true }),
  ],
])(
  "%s, with closing asked for: nearly all end",
  async (_name, make) => {
    const { finished, cut } = await attackAll(make);
    expect(finished).toBeGreaterThanOrEqual(0.99 * (finished + cut));
  },
  3_600_000,
);
