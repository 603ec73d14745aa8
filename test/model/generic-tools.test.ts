// Tools of a template without a section for them, on the real tokenizer and cache: each token is computed once.
import { describe, expect, test } from "vitest";
import { Chat } from "../../src/chat/chat.ts";
import type { ChatMessage, ChatRequest } from "../../src/chat/types.ts";
import type { EngineStats } from "../../src/engine/types.ts";
import { scripted } from "../support/engine.ts";
import { callText } from "../support/scripted-server.ts";
import { engineOfTests } from "../support/watched-engine.ts";

const template =
  "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
const parameters = { type: "object", properties: { city: { type: "string" } } };
const user: ChatMessage = { role: "user", content: "Is it raining in Rome and in Oslo?" };
const end = "<|im_end|>";
const calls = `I look.\n${callText("weather", { city: "Rome" })}\n${callText("weather", { city: "Oslo" })}${end}`;

describe("a generic tool prompt", () => {
  const currentEngine = engineOfTests({ contextSize: 2048 });

  async function counted(work: (chat: Chat) => Promise<void>) {
    const engine = currentEngine();
    const chat = new Chat(engine, { template });
    const before = engine.stats();
    await work(chat);
    const after = engine.stats();
    const count = (name: keyof EngineStats): number => after[name] - before[name];
    return { count, counters: chat.counters };
  }

  async function request(text: string, more: Partial<ChatRequest> = {}): Promise<ChatRequest> {
    return {
      messages: [user],
      tools: [{ name: "weather", parameters }],
      toolMode: "internal",
      sampling: scripted(await currentEngine().tokenize(text)),
      stop: [],
      owner: "test",
      ...more,
    };
  }

  test("resumes with the results alone", async () => {
    let content = "";
    const { count, counters } = await counted(async (chat) => {
      const generation = chat.generate(await request(`${calls}It rains in Oslo.${end}`));
      for await (const event of generation) {
        if (event.type === "content") content += event.text;
        if (event.type !== "hold") continue;
        expect(event.calls.map((call) => call.arguments)).toEqual([
          '{"city":"Rome"}',
          '{"city":"Oslo"}',
        ]);
        const results = ["sun", "rain"];
        await generation.resume(
          event.calls.map(({ id, name }, index) => ({
            callId: id,
            name,
            content: results[index]!,
          })),
        );
      }
    });
    expect(content).toContain("It rains in Oslo.");
    expect(counters).toMatchObject({ resumes: 1, rerenders: 0 });
    expect(count("resumedTokens")).toBeGreaterThan(10);
    expect(count("prefilledTokens")).toBe(
      count("promptTokens") - count("cachedTokens") + count("resumedTokens"),
    );
  });

  test("finds a round in the cache that a client brings back with its results", async () => {
    const { count, counters } = await counted(async (chat) => {
      const first = await request(calls, { toolMode: "external" });
      let turn: ChatMessage = user;
      for await (const event of chat.generate(first))
        if (event.type === "finish")
          turn = { role: "assistant", content: "I look.", toolCalls: event.calls };
      const results = (turn.role === "assistant" ? (turn.toolCalls ?? []) : []).map(
        ({ id }): ChatMessage => ({ role: "tool", toolCallId: id, content: "rain" }),
      );
      expect(results).toHaveLength(2);
      const more = { toolMode: "external" as const, messages: [user, turn, ...results] };
      for await (const _ of chat.generate(await request(`It rains.${end}`, more)));
    });
    expect(counters).toMatchObject({ splices: 1, rerenders: 0 });
    // All that the first request had, and what it said.
    expect(count("cachedTokens")).toBeGreaterThan(0.75 * (count("promptTokens") / 2));
    expect(count("recomputedTokens")).toBe(0);
    expect(count("prefilledTokens")).toBe(count("promptTokens") - count("cachedTokens"));
  });
});
