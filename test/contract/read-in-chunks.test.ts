/**
 * The loop that agents fall into: a file is read in chunks, and the client loses what was read. The model is a
 * fake that does what a sensible one would: it asks for the first chunk that it cannot see, and sums up when it
 * has seen the last.
 */

import { afterEach, beforeEach, expect, test } from "vitest";
import type { ChatMessage } from "../../src/chat/types.ts";
import { callEvents, finish } from "./fake-services.ts";
import { createResponsesWorld, type Json, type ResponsesWorld } from "./responses-world.ts";

const chunks = [
  { eof: false, text: "Executive Summary" },
  { eof: false, text: "Phase 2" },
  { eof: true, text: "Phase 4: Learning from Corrections" },
];
const tools = [{ type: "function", name: "read_file_chunk" }];
const user = { type: "message", role: "user", content: "please summarize RAG.md" };
let world: ResponsesWorld;

beforeEach(async () => {
  world = await createResponsesWorld();
  const { generate } = world.chat;
  let callCount = 0;
  world.chat.generate = (request) => {
    const seen = request.messages.filter(({ role }) => role === "tool");
    const next = chunks.findIndex(({ text }) => !seen.some((message) => shows(message, text)));
    const id = `call_${++callCount}`;
    const call = { id, name: "read_file_chunk", arguments: JSON.stringify({ chunk: next }) };
    world.chat.script =
      next < 0
        ? [{ type: "content", text: "The summary." }, finish("stop")]
        : [...callEvents(call), finish("tool_calls", [call])];
    return generate.call(world.chat, request);
  };
});

afterEach(() => world.close());

function shows({ content }: ChatMessage, text: string): boolean {
  return content.includes(text);
}

interface Round {
  calls: Json[];
  outputs: object[];
  gap: unknown;
  text: string;
}

async function ask(input: object[]): Promise<Round> {
  const { status, headers, body } = await world.create({ input, tools, store: false });
  expect(status).toBe(200);
  const calls = body.output.filter(({ type }: Json) => type === "function_call");
  const outputs = calls.map((call: Json) => ({
    type: "function_call_output",
    call_id: call.call_id,
    output: chunks[JSON.parse(call.arguments).chunk],
  }));
  const gap = headers["x-fermata-history-gap"];
  return { calls, outputs, gap, text: body.output[0].content?.[0]?.text ?? "" };
}

test("a client that keeps its history gets its summary after the last chunk", async () => {
  const input: object[] = [user];
  const reads: number[] = [];
  for (;;) {
    const { calls, outputs, gap, text } = await ask(input);
    expect(gap).toBeUndefined();
    if (calls.length === 0) {
      expect(text).toBe("The summary.");
      break;
    }
    reads.push(JSON.parse(calls[0].arguments).chunk);
    input.push(...calls, ...outputs);
  }
  expect(reads).toEqual([0, 1, 2]);
});

test("one that keeps the last turn only is told so, from the moment that it loses one", async () => {
  let input: object[] = [user];
  const reads: number[] = [];
  const gaps: unknown[] = [];
  for (let round = 0; round < 5; round++) {
    const { calls, outputs, gap } = await ask(input);
    reads.push(JSON.parse(calls[0].arguments).chunk);
    gaps.push(gap);
    input = [user, ...calls, ...outputs];
  }
  expect(reads).toEqual([0, 1, 0, 1, 0]);
  expect(gaps).toEqual([undefined, undefined, "call_1", "call_2", "call_3"]);
});

test("one that sends results without their type is stopped at the first", async () => {
  const { calls, outputs } = await ask([user]);
  const { type: _type, ...malformed } = outputs[0] as { type: string };
  const reply = await world.create({ input: [user, ...calls, malformed], tools });
  expect(reply).toMatchObject({ status: 400, body: { error: { param: "input[2].type" } } });
});
