// The SDK's stream helper over hundreds of made-up turns: it never throws, and what it puts together is
// what was said. The chat is a fake; the wire is not.
import Anthropic from "@anthropic-ai/sdk";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ChatEvent } from "../../src/chat/types.ts";
import { callEvents, createWorld, finish, type World } from "../contract/fake-services.ts";

let world: World;
let client: Anthropic;
beforeAll(async () => {
  world = createWorld();
  const baseURL = await world.app.listen({ port: 0, host: "127.0.0.1" });
  client = new Anthropic({ baseURL, apiKey: "none", maxRetries: 0 });
});
afterAll(() => world.app.close());

const words = fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 });
/** Arguments as models write them: whole, cut off, or no JSON at all. */
const written = fc.oneof(
  fc.dictionary(words, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }).map((v) => JSON.stringify(v)),
  fc.constantFrom('{"a": "b', '{"a": oops}', "oops", "[1]", "", '{"a": 1} and more', '{"a": 1e'),
);
const part = fc.oneof(
  fc.record({ kind: fc.constant("content" as const), pieces: fc.array(words, { maxLength: 3 }) }),
  fc.record({ kind: fc.constant("reasoning" as const), pieces: fc.array(words, { maxLength: 3 }) }),
  fc.record({ kind: fc.constant("call" as const), text: written, isCut: fc.boolean() }),
);
const turn = fc.record({
  parts: fc.array(part, { maxLength: 5 }),
  reason: fc.constantFrom("stop" as const, "length" as const, "tool_calls" as const),
});

const tools = [{ name: "f", input_schema: { type: "object" as const } }];

test("300 turns", async () => {
  const property = fc.asyncProperty(turn, async ({ parts, reason }) => {
    let calls = 0;
    const events = parts.flatMap((one): ChatEvent[] => {
      if (one.kind !== "call") return one.pieces.map((text) => ({ type: one.kind, text }));
      const index = calls++;
      const call = { id: `call_${index}`, name: "f", arguments: one.text };
      const whole = callEvents(call, index);
      return one.isCut ? whole.slice(0, -1) : whole;
    });
    world.chat.script = [...events, finish(reason)];
    const message = await client.messages
      .stream({ model: "tiny", max_tokens: 10, messages: [{ role: "user", content: "Hi" }], tools })
      .finalMessage();
    const textOf = (kind: string): string =>
      parts.flatMap((one) => (one.kind === kind && "pieces" in one ? one.pieces : [])).join("");
    const read = { text: "", thinking: "", calls: 0 };
    for (const block of message.content) {
      if (block.type === "text") read.text += block.text;
      else if (block.type === "thinking") read.thinking += block.thinking;
      else if (block.type === "tool_use") {
        read.calls++;
        // Reading it parses what was streamed.
        expect(block.input).toBeTypeOf("object");
      }
    }
    expect(read).toEqual({ text: textOf("content"), thinking: textOf("reasoning"), calls });
    expect(message.stop_reason).toBe(
      { stop: "end_turn", length: "max_tokens", tool_calls: "tool_use" }[reason],
    );
  });
  await fc.assert(property, { numRuns: 300, seed: 4 });
});
