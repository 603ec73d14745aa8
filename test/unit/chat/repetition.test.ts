import { describe, expect, it } from "vitest";
import { Chat } from "../../../src/chat/chat.ts";
import type { ChatRequest } from "../../../src/chat/types.ts";
import { RepetitionDetector } from "../../../src/chat/answer/repetition.ts";
import { request, run, setUp } from "./chat-fixtures.ts";

/** Index of the token at which `tokens` are stopped; -1: they are not. */
function stopsAt(tokens: readonly number[]): number {
  const detector = new RepetitionDetector();
  return tokens.findIndex((token) => detector.add(token));
}

function repeated(period: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => 100 + (index % period));
}

describe("RepetitionDetector", () => {
  it.each([
    [1, 320],
    [2, 320],
    [20, 320],
    [21, 336],
    [64, 1024],
  ])("stops a pattern of %i tokens when it fills %i", (period, count) => {
    expect(stopsAt(repeated(period, 3000))).toBe(count - 1);
    expect(stopsAt([1, 2, 3, ...repeated(period, 3000)])).toBe(count + 2);
  });

  it("leaves longer patterns, counting lists and equal rows of a table alone", () => {
    expect(stopsAt(repeated(65, 5000))).toBe(-1);
    const list = Array.from({ length: 500 }, (_, index) => [7, 8, 1000 + index, 9]).flat();
    expect(stopsAt(list)).toBe(-1);
    expect(stopsAt(repeated(10, 300))).toBe(-1);
    const rows = Array.from({ length: 100 }, (_, row) => [...repeated(30, 30), 5000 + row]).flat();
    expect(stopsAt(rows)).toBe(-1);
  });

  it("forgets a pattern that ended", () => {
    expect(stopsAt([...repeated(2, 310), 1, ...repeated(2, 310), 2])).toBe(-1);
  });
});

describe("an answer that repeats itself", () => {
  const text = `So: ${"ha ".repeat(1000)}`;
  const free: Partial<ChatRequest> = { tools: [], toolMode: "none" };
  const notice = "The answer was stopped: it repeated itself.";

  it("ends with what was said and a notice", async () => {
    const { chat, engine } = setUp([{ text, end: "never" }]);
    const { content, finish } = await run(chat, request(free));
    expect(engine.last.cancelled).toBe(true);
    expect(content.startsWith("So: ha ha ha")).toBe(true);
    expect(content.endsWith(`ha\n\n[${notice}]`) || content.endsWith(` \n\n[${notice}]`)).toBe(
      true,
    );
    expect(content.length).toBeLessThan(400);
    expect(finish).toMatchObject({ reason: "stop", calls: [], warnings: [notice] });
  });

  it.each([
    [
      "an answer of a given form",
      {
        guidance: {
          toolChoice: "auto",
          parallel: true,
          closeAtLimit: false,
          document: { kind: "json_object" },
        },
      },
    ],
    ["a request that ignores the end", { sampling: { ...request().sampling, ignoresEnd: true } }],
  ] as const)("is let go on: %s", async (_title, more) => {
    const { chat } = setUp([text]);
    const { content, finish } = await run(chat, request({ ...free, ...more } as never));
    expect(content).toBe(text);
    expect(finish).not.toHaveProperty("warnings");
  });

  it("is let go on where the option says so", async () => {
    const { engine } = setUp([text]);
    const chat = new Chat(engine, { stopsRepetition: false });
    expect((await run(chat, request(free))).content).toBe(text);
  });
});
