// A history that the client sends as tokens stands before the prompt.
import { describe, expect, it } from "vitest";
import { request, run, setUp, user } from "./chat-fixtures.ts";

const fresh = request({ toolMode: "none", tools: [] });
const history = Int32Array.of(900, 901, 902);

describe("leading tokens", () => {
  it("come before what the template writes", async () => {
    const { engine, chat } = setUp(["Sunny.", "Sunny."]);
    await run(chat, fresh);
    const bare = engine.last.request.prompt;
    const told: Int32Array[] = [];
    await run(chat, {
      ...fresh,
      leadingTokens: history,
      onPrompt: (tokens) => told.push(tokens),
    });
    expect([...engine.last.request.prompt]).toEqual([...history, ...bare]);
    expect(told).toEqual([engine.last.request.prompt]);
  });

  it("are not found again by a conversation of the same words", async () => {
    const { engine, chat } = setUp(["Sunny.", "Yes."]);
    const { content } = await run(chat, { ...fresh, leadingTokens: history });
    const messages = [
      user,
      { role: "assistant" as const, content },
      { role: "user" as const, content: "Sure?" },
    ];
    await run(chat, { ...fresh, messages });
    expect(chat.counters.splices).toBe(0);
    expect([...engine.last.request.prompt]).not.toContain(900);
  });

  it("begin the text, so the prompt behind them does not", async () => {
    const { engine, chat } = setUp(["Yes.", "Yes."], { bosToken: "<|im_start|>" });
    await run(chat, fresh);
    const bare = engine.last.request.prompt;
    await run(chat, { ...fresh, leadingTokens: history });
    expect([...engine.last.request.prompt]).toEqual([...history, ...bare.subarray(1)]);
  });
});
