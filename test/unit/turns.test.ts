/** Work that waits for the work before it. */

import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { Turns, TurnsOfEach } from "../../src/turns.ts";

/** Work that tells when it begins, and ends when it is told to. */
function recorded(name: string, begun: string[]) {
  let end = (): void => {};
  let fail = (): void => {};
  const ended = new Promise<string>((resolve, reject) => {
    end = () => resolve(name);
    fail = () => reject(new Error(name));
  });
  const work = (): Promise<string> => {
    begun.push(name);
    return ended;
  };
  return { work, end, fail };
}

test.each([
  ["Turns", () => new Turns()],
  [
    "TurnsOfEach, about one thing",
    () => {
      const turns = new TurnsOfEach();
      return { take: (work: () => Promise<string>) => turns.take("thing", work) };
    },
  ],
])("%s: work begins in its order, when the work before it has ended or failed", async (_, make) => {
  const turns = make();
  const begun: string[] = [];
  const [first, second, third] = ["first", "second", "third"].map((name) => recorded(name, begun));
  const results = [first, second, third].map((one) => turns.take(one!.work));
  const ended = Promise.allSettled(results);
  await setImmediate();
  expect(begun).toEqual(["first"]);
  // What is ready first has its turn no sooner.
  third!.end();
  first!.fail();
  await expect(results[0]).rejects.toThrow("first");
  await setImmediate();
  expect(begun).toEqual(["first", "second"]);
  second!.end();
  expect(await ended).toMatchObject([
    { status: "rejected" },
    { status: "fulfilled", value: "second" },
    { status: "fulfilled", value: "third" },
  ]);
  expect(begun).toEqual(["first", "second", "third"]);
});

test("work about another thing does not wait", async () => {
  const turns = new TurnsOfEach();
  const begun: string[] = [];
  const [one, other] = [recorded("one", begun), recorded("other", begun)];
  const results = [turns.take("a", one.work), turns.take("b", other.work)];
  await setImmediate();
  expect(begun).toEqual(["one", "other"]);
  one.end();
  other.end();
  expect(await Promise.all(results)).toEqual(["one", "other"]);
});

test("a thing is known until its last work has ended or failed", async () => {
  const turns = new TurnsOfEach();
  const [first, second] = [recorded("first", []), recorded("second", [])];
  expect(turns.has("a")).toBe(false);
  const results = [turns.take("a", first.work), turns.take("a", second.work)];
  const ended = Promise.allSettled(results);
  first.end();
  await results[0];
  expect(turns.has("a")).toBe(true);
  expect(turns.has("b")).toBe(false);
  second.fail();
  await ended;
  expect(turns.has("a")).toBe(false);
});
