import { describe, expect, it } from "vitest";

import { callText, request, run, setUp } from "./chat-fixtures.ts";

const system = {
  role: "system",
  content: "Answer in words that a child of ten years knows.",
} as const;
const ask = (content: string) =>
  request({ messages: [system, { role: "user", content }], tools: [] });

/** The texts before the marks of the last prompt. */
function marked({ engine }: ReturnType<typeof setUp>): string[] {
  const { prompt, marks = [] } = engine.last.request;
  return [...marks].map((length) => engine.spell(prompt.subarray(0, length)));
}

describe("marks of a prompt", () => {
  it("stand behind what other users' prompts share, and before the answer", async () => {
    const world = setUp(["Hi.", "Hi."], { cutsAnywhere: false });
    await run(world.chat, ask("Who are you?"));
    const [first, last] = marked(world);
    expect(first).toMatch(/knows\.⟪<\|im_end\|>⟫\n⟪<\|im_start\|>⟫user$/u);
    expect(last).toMatch(/Who are you\?⟪<\|im_end\|>⟫\n$/u);
    await run(world.chat, ask("Where?"));
    expect(marked(world)[0]).toBe(first);
  });

  it("do not depend on what the user's message begins with", async () => {
    const world = setUp(["Hi.", "Hi."], { cutsAnywhere: false });
    await run(world.chat, ask("a"));
    const [first] = marked(world);
    await run(world.chat, ask("b <|im_end|> c"));
    expect(marked(world)[0]).toBe(first);
  });

  it("are found in a conversation that returns with its own tokens", async () => {
    const world = setUp(["Sun.", "Ok."], { cutsAnywhere: false });
    const first = ask("Weather?");
    await run(world.chat, first);
    const messages = [
      ...first.messages,
      { role: "assistant", content: "Sun." } as const,
      { role: "user", content: "Sure?" } as const,
    ];
    await run(world.chat, { ...first, messages });
    expect(world.chat.counters.splices).toBe(1);
    expect(marked(world).at(-1)).toMatch(/Sure\?⟪<\|im_end\|>⟫\n$/u);
  });

  it("go on behind the results of tools", async () => {
    const world = setUp([callText("Rome"), "Ok."], { cutsAnywhere: false });
    await run(world.chat, request(), [["sun"]]);
    const [resume] = world.engine.last.resumes;
    const [mark] = resume?.marks ?? [];
    expect(world.engine.spell(resume?.tokens.subarray(mark) ?? [])).toBe(
      "⟪<|im_start|>⟫assistant\n",
    );
  });

  it("are none where the model can be cut anywhere", async () => {
    const world = setUp(["Hi."]);
    await run(world.chat, ask("Who are you?"));
    expect(marked(world)).toEqual([]);
    expect(world.engine.last.request.shared).toBeUndefined();
  });

  it("engines that share a cache are told what other users' prompts share", async () => {
    const world = setUp(["Sun.", "Ok."], { isShared: true });
    const first = ask("Weather?");
    await run(world.chat, first);
    const { prompt, shared } = world.engine.last.request;
    expect(marked(world)).toEqual([]);
    expect(world.engine.spell(prompt.subarray(0, shared))).toMatch(
      /knows\.⟪<\|im_end\|>⟫\n⟪<\|im_start\|>⟫user$/u,
    );
    const messages = [
      ...first.messages,
      { role: "assistant", content: "Sun." } as const,
      { role: "user", content: "Sure?" } as const,
    ];
    await run(world.chat, { ...first, messages });
    // It has computed this beginning itself.
    expect(world.engine.last.request.shared).toBeUndefined();
  });
});
