import { describe, expect, it, vi } from "vitest";
import type { ChatMessage, ToolCall } from "../../../src/chat/types.ts";
import { callText, request, run, setUp, user, weather } from "./chat-fixtures.ts";

describe("an answer of several rounds", () => {
  const internal = request();
  const next: ChatMessage = { role: "user", content: "And tomorrow?" };

  /** One whose model looks up twice; gives what its client saw: a blank line between the rounds' texts. */
  async function answered(rounds: string[], results: string[][]) {
    const world = setUp([...rounds, "Rain.", "Bye."]);
    const { content } = await run(world.chat, internal, results);
    expect(content).toBe("I look.Sun, then snow.");
    const seen = "I look.\n\nSun, then snow.";
    return { ...world, answer: { role: "assistant", content: seen } satisfies ChatMessage };
  }

  const lookedUp = ["I look.\n\n" + callText("Rome"), callText("Oslo"), "Sun, then snow."];
  const found = (): string[][] => [["sun"], ["snow"]];

  it("is spliced when it comes back as the one message that its client saw", async () => {
    const { chat, engine, answer } = await answered(lookedUp, found());
    const [first] = engine.generations;
    await run(chat, { ...internal, messages: [user, answer, next] });
    const prompt = engine.last.request.prompt;
    expect([...prompt.subarray(0, first!.tokens.length)]).toEqual(first!.tokens);
    expect(engine.spell(prompt.subarray(first!.tokens.length))).toBe(
      "\n⟪<|im_start|>⟫user\nAnd tomorrow?⟪<|im_end|>⟫\n⟪<|im_start|>⟫assistant\n",
    );
    expect(chat.counters.splices).toBe(1);
  });

  it("is so turn after turn", async () => {
    const { chat, engine, answer } = await answered(lookedUp, found());
    engine.rounds.unshift({ text: callText("Bern") });
    const before = engine.last;
    const second = await run(chat, { ...internal, messages: [user, answer, next] }, [["rain"]]);
    const history = [user, answer, next, { role: "assistant" as const, content: second.content }];
    await run(chat, { ...internal, messages: [...history, { role: "user", content: "Thanks." }] });
    const [, middle, last] = engine.generations;
    expect([...middle!.request.prompt.subarray(0, before.tokens.length)]).toEqual(before.tokens);
    expect([...last!.request.prompt.subarray(0, middle!.tokens.length)]).toEqual(middle!.tokens);
    expect(chat.counters.splices).toBe(2);
  });

  it("is not looked for where it was not said", async () => {
    const { chat, engine, answer } = await answered(lookedUp, found());
    const [first] = engine.generations;
    const { ChatTemplate } = await import("../../../src/chat/template/template.ts");
    const repeated = Array.from({ length: 10 }, () => [answer, next]).flat();
    const render = vi.spyOn(ChatTemplate.prototype, "renderInParts");
    await run(chat, { ...internal, messages: [user, ...repeated] });
    const { length } = render.mock.calls;
    render.mockRestore();
    // The messages before the one answer, all of them, and those with a stand-in for the answer.
    expect(length).toBe(3);
    expect(chat.counters.splices).toBe(1);
    expect([...engine.last.request.prompt.subarray(0, first!.tokens.length)]).toEqual(
      first!.tokens,
    );
  });

  it("is spliced when it comes back round by round, the calls' JSON rewritten", async () => {
    const { chat, engine } = await answered(lookedUp, found());
    const [first] = engine.generations;
    const call = (id: string, city: string): ToolCall => ({
      id,
      name: weather.name,
      arguments: `{ "city" : "${city}" }`,
    });
    const rounds = (ids: readonly [string, string]): ChatMessage[] => [
      user,
      { role: "assistant", content: "I look.", toolCalls: [call(ids[0], "Rome")] },
      { role: "tool", toolCallId: ids[0], content: "sun" },
      { role: "assistant", content: "", toolCalls: [call(ids[1], "Oslo")] },
      { role: "tool", toolCallId: ids[1], content: "snow" },
      { role: "assistant", content: "Sun, then snow." },
      next,
    ];
    // This template shows no ids: those of items of an MCP server may stand in their place.
    await run(chat, { ...internal, messages: rounds(["mcp_1", "mcp_2"]) });
    const prompt = engine.last.request.prompt;
    expect([...prompt.subarray(0, first!.tokens.length)]).toEqual(first!.tokens);
    expect(chat.counters.splices).toBe(1);
  });

  const forgeries: [string, (answer: ChatMessage) => Partial<typeof internal>][] = [
    ["other words", () => ({ messages: [user, { role: "assistant", content: "Sun." }, next] })],
    ["another question", (answer) => ({ messages: [next, answer, next] })],
    ["another owner", (answer) => ({ messages: [user, answer, next], owner: "you" })],
    ["other tools", (answer) => ({ messages: [user, answer, next], tools: [] })],
    [
      "other reasoning",
      (answer) => ({ messages: [user, { ...answer, reasoning: "Forged." } as ChatMessage, next] }),
    ],
  ];

  it.each(forgeries)("is not with %s", async (_title, forge) => {
    const { chat, engine, answer } = await answered(lookedUp, found());
    const forged = { ...internal, ...forge(answer) };
    await run(chat, forged);
    expect(chat.counters.splices).toBe(0);
    const plain = setUp([]);
    await run(plain.chat, forged);
    expect([...engine.last.request.prompt]).toEqual([...plain.engine.last.request.prompt]);
  });

  it("is told from one of another conversation that says the same", async () => {
    const { chat, engine, answer } = await answered(lookedUp, found());
    const [first] = engine.generations;
    engine.rounds.unshift(...lookedUp.map((text) => ({ text })));
    await run(chat, { ...internal, messages: [next] }, [["fog"], ["fog"]]);
    await run(chat, { ...internal, messages: [user, answer, next] });
    expect([...engine.last.request.prompt.subarray(0, first!.tokens.length)]).toEqual(
      first!.tokens,
    );
  });
});
