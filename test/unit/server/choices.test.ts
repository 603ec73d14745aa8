import type { RunEvent } from "../../../src/tools/types.ts";
import { describe, expect, test } from "vitest";
import type { ChatEvent } from "../../../src/chat/types.ts";
import { runChoices } from "../../../src/server/answer/choices.ts";

const word = (text: string): ChatEvent => ({ type: "content", text });

async function* words(count: number, before: Promise<void>): AsyncGenerator<ChatEvent, void, void> {
  await before;
  for (let index = 0; index < count; index++) yield word(`${index}`);
}

let reactions = 0;

/** Counts who waits for it. */
class Watched<T> extends Promise<T> {}
const { then } = Promise.prototype;
// oxlint-disable-next-line unicorn/no-thenable
Object.defineProperty(Watched.prototype, "then", {
  value(this: Promise<unknown>, ...reaction: Parameters<typeof then>) {
    reactions += 1;
    return Reflect.apply(then, this, reaction);
  },
});

function counted<Run extends AsyncGenerator<ChatEvent, void, void>>(run: Run): Run {
  const next = run.next.bind(run);
  run.next = () => Watched.resolve(next());
  return run;
}

describe("choices", () => {
  test("those that wait cost nothing for the events of the others", async () => {
    const count = 40;
    let admit = (): void => {};
    const admitted = new Promise<void>((resolve) => (admit = resolve));
    const start = (choice: number) =>
      counted(choice === 0 ? words(500, Promise.resolve()) : words(1, admitted));
    reactions = 0;
    const heard: number[] = [];
    for await (const { choice } of runChoices(count, start, new AbortController().signal)) {
      heard.push(choice);
      if (heard.length === 500) admit();
    }
    expect(heard.slice(0, 500).every((choice) => choice === 0)).toBe(true);
    expect(heard.slice(500)).toEqual(Array.from({ length: count - 1 }, (_, index) => index + 1));
    // A race of all at each event: 40 times as many.
    expect(reactions).toBeLessThan(3 * (500 + 2 * count));
  });

  test("what is ready is heard in turn, however fast one is", async () => {
    const start = (): AsyncGenerator<ChatEvent, void, void> => words(3, Promise.resolve());
    const heard: [number, RunEvent][] = [];
    for await (const { choice, event } of runChoices(2, start, new AbortController().signal))
      heard.push([choice, event]);
    expect(heard).toEqual(
      ["0", "1", "2"].flatMap((text) => [
        [0, word(text)],
        [1, word(text)],
      ]),
    );
  });

  test("the first failure is thrown, and the others are ended", async () => {
    const ended: number[] = [];
    async function* start(choice: number): AsyncGenerator<ChatEvent, void, void> {
      try {
        yield word("a");
        if (choice > 0) throw new RangeError(`choice ${choice}`);
        for (;;) yield word("b");
      } finally {
        ended.push(choice);
      }
    }
    const heard: number[] = [];
    const read = async (): Promise<void> => {
      for await (const { choice } of runChoices(3, start, new AbortController().signal))
        heard.push(choice);
    };
    await expect(read()).rejects.toThrow("choice 1");
    expect(heard.slice(0, 3)).toEqual([0, 1, 2]);
    expect(ended.sort()).toEqual([0, 1, 2]);
  });
});
