// An answer that the client began, and the model continues.
import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/chat/types.ts";
import { callText, chatml, request, run, setUp, user } from "./chat-fixtures.ts";

const begun = request({ toolMode: "external", prefill: "The weather is <|im_end|>" });

describe("a prefill", () => {
  it("ends the prompt as text, and is no part of what is told", async () => {
    const { engine, chat } = setUp([" fine."]);
    const { content, finish } = await run(chat, begun);
    expect(content).toBe(" fine.");
    expect(finish.reason).toBe("stop");
    expect(engine.spell(engine.last.request.prompt)).toMatch(
      /⟪<\|im_start\|>⟫assistant\nThe weather is <\|im_end\|>$/,
    );
  });

  it("is in the prompt that is shown, and in none that is refused", async () => {
    const { engine, chat } = setUp([]);
    expect(await chat.promptText(begun)).toMatch(/assistant\nThe weather is <\|im_end\|>$/u);
    const thinking = { ...begun, messages: [user] };
    const template = `${engine.model.chatTemplate}<think>`;
    await expect(setUp([], { template }).chat.promptText(thinking)).rejects.toThrow(
      /reasons before/u,
    );
  });

  it("is counted", async () => {
    const { chat } = setUp([]);
    const bare = await chat.countPromptTokens({ ...begun, prefill: "" });
    expect(await chat.countPromptTokens(begun)).toBe(bare + begun.prefill!.length);
  });

  it("may be followed by a call", async () => {
    const { chat } = setUp([` so:\n${callText("Rome")}`]);
    const { finish } = await run(chat, begun);
    expect(finish.calls).toMatchObject([{ name: "get_weather", arguments: '{"city":"Rome"}' }]);
  });

  it("is part of the turn when the whole comes back", async () => {
    const { engine, chat } = setUp([" fine.", "Yes."]);
    const { content } = await run(chat, begun);
    const [first] = engine.generations;
    const whole: ChatMessage = { role: "assistant", content: begun.prefill! + content };
    const messages = [user, whole, { role: "user" as const, content: "Sure?" }];
    await run(chat, { ...begun, prefill: undefined, messages });
    expect([...engine.last.request.prompt.subarray(0, first!.tokens.length)]).toEqual(
      first!.tokens,
    );
    expect(chat.counters.splices).toBe(1);
  });

  it("or a turn that is not opened: the prompt ends with the last message", async () => {
    const { engine, chat } = setUp(["Yes."]);
    const closed = { ...begun, prefill: "", openTurn: false };
    expect(await chat.promptText(closed)).toMatch(/Weather\?<\|im_end\|>\n$/u);
    await run(chat, closed);
    expect(engine.spell(engine.last.request.prompt)).toMatch(/Weather\?⟪<\|im_end\|>⟫\n$/u);
  });

  it("is refused where the template opens reasoning", async () => {
    const template = chatml.replace(
      "<|im_start|>assistant\\n' }}",
      "<|im_start|>assistant\\n<think>\\n' }}",
    );
    expect(template).not.toBe(chatml);
    const { chat } = setUp([], { template });
    await expect(run(chat, begun)).rejects.toMatchObject({
      code: "unsupported_value",
      param: "messages",
    });
  });
});
