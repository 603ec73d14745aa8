import type { RunEvent } from "../../../src/tools/types.ts";
import type { Sink } from "../../../src/tools/event-stream.ts";
import { describe, expect, test } from "vitest";
import type { ChatEvent } from "../../../src/chat/types.ts";
import { runChoices } from "../../../src/server/answer/choices.ts";

const word = (text: string): ChatEvent => ({ type: "content", text });

async function push(sink: Sink<RunEvent>, count: number, before?: Promise<void>): Promise<void> {
  await before;
  for (let index = 0; index < count; index++) await sink(word(`${index}`));
}

describe("choices", () => {
  test("those that wait are heard when they are ready, and the others meanwhile", async () => {
    const count = 40;
    let admit = (): void => {};
    const admitted = new Promise<void>((resolve) => (admit = resolve));
    const start = (choice: number, _signal: AbortSignal, sink: Sink<RunEvent>): Promise<void> =>
      choice === 0 ? push(sink, 500) : push(sink, 1, admitted);
    const heard: number[] = [];
    for await (const { choice } of runChoices(count, start, new AbortController().signal)) {
      heard.push(choice);
      if (heard.length === 500) admit();
    }
    expect(heard.slice(0, 500).every((choice) => choice === 0)).toBe(true);
    expect(heard.slice(500)).toEqual(Array.from({ length: count - 1 }, (_, index) => index + 1));
  });

  test("what is ready is heard in turn, however fast one is", async () => {
    const heard: [number, RunEvent][] = [];
    const choices = runChoices(
      2,
      (_choice, _signal, sink) => push(sink, 3),
      new AbortController().signal,
    );
    for await (const { choice, event } of choices) heard.push([choice, event]);
    expect(heard).toEqual(
      ["0", "1", "2"].flatMap((text) => [
        [0, word(text)],
        [1, word(text)],
      ]),
    );
  });

  test("the first failure is thrown, and the others are ended", async () => {
    const ended: number[] = [];
    const signals: boolean[] = [];
    const start = async (choice: number, signal: AbortSignal, sink: Sink<RunEvent>) => {
      try {
        await sink(word("a"));
        if (choice > 0) throw new RangeError(`choice ${choice}`);
        for (;;) await sink(word("b"));
      } finally {
        ended.push(choice);
        signals[choice] = signal.aborted;
      }
    };
    const heard: number[] = [];
    const read = async (): Promise<void> => {
      for await (const { choice } of runChoices(3, start, new AbortController().signal))
        heard.push(choice);
    };
    await expect(read()).rejects.toThrow("choice 1");
    expect(heard.slice(0, 3)).toEqual([0, 1, 2]);
    expect(ended.sort()).toEqual([0, 1, 2]);
    expect(signals[0]).toBe(true);
  });

  test("who leaves ends all", async () => {
    const ended: number[] = [];
    const start = async (choice: number, _signal: AbortSignal, sink: Sink<RunEvent>) => {
      try {
        for (;;) await sink(word("a"));
      } finally {
        ended.push(choice);
      }
    };
    for await (const { choice } of runChoices(3, start, new AbortController().signal))
      if (choice === 1) break;
    expect(ended.sort()).toEqual([0, 1, 2]);
  });
});
