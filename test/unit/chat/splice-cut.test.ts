// An answer that ended at the token limit comes back as a message: its own tokens are found, as those of one that ended itself.
import { expect, it } from "vitest";
import type { ChatMessage } from "../../../src/chat/types.ts";
import { chatml, request, run, setUp, user } from "./chat-fixtures.ts";

const external = request({ toolMode: "external" });
const next = { role: "user", content: "Go on." } satisfies ChatMessage;

/** The conversation goes on behind an answer that was cut. */
async function cut(text: string) {
  const world = setUp([{ text, end: "length" }, "Ok."], { template: chatml });
  const { content, finish } = await run(world.chat, external);
  expect(finish.reason).toBe("length");
  const [first] = world.engine.generations;
  await run(world.chat, { ...external, messages: [user, { role: "assistant", content }, next] });
  return { ...world, first: first! };
}

it("has the tokens that were written", async () => {
  const { engine, chat, first } = await cut("I look at all");
  expect(chat.counters.splices).toBe(1);
  const { prompt } = engine.last.request;
  expect([...prompt.subarray(0, first.tokens.length)]).toEqual(first.tokens);
  expect(engine.spell(prompt.subarray(first.tokens.length))).toMatch(/^⟪?<\|im_end\|>⟫?\n/);
});

it.each([
  ["call, whose beginning no client sends", 'I look.<tool_call>{"name":"get_wea'],
  ["character, whose bytes are no text", "I look \uFFFD"],
])("is written anew where it was cut inside of a %s", async (_what, text) => {
  const { chat } = await cut(text);
  expect(chat.counters.splices).toBe(0);
});
