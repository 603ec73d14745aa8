import { expect, test } from "vitest";
import { pathTo, titleOf } from "../../../../src/server/conversations/run-plan.ts";
import { callSummary } from "../../../../src/server/conversations/calls.ts";
import { Transcript } from "../../../../src/tools/transcript.ts";
import {
  call,
  content,
  ended,
  finished,
  hold,
  type Recorded,
  started,
  within,
  written,
} from "../../../support/run-recording.ts";

const one = call("c1", "read", { path: "a" });
const two = call("c2", "read", { path: "b" });

function messages(recorded: readonly Recorded[]) {
  const transcript = new Transcript();
  for (const event of recorded) transcript.add(event);
  return transcript.messages();
}

test("rounds are turns; results stand in the order of the calls", () => {
  expect(
    messages([
      content("Look"),
      content("ing."),
      ...written(one),
      ...written(two, 1),
      hold(one, two),
      started(one),
      started(two),
      // What a sub-agent says and calls is its own.
      within(two, "agent", content("inner")),
      within(two, "agent", ended(one, "not this")),
      ended(two, "B"),
      ended(one, "A"),
      content("Done."),
      finished,
    ]),
  ).toEqual([
    { role: "assistant", content: "Looking.", toolCalls: [one, two] },
    { role: "tool", toolCallId: "c1", name: "read", content: "A" },
    { role: "tool", toolCallId: "c2", name: "read", content: "B" },
    { role: "assistant", content: "Done." },
  ]);
});

test("results that come before the round ends are not lost", () => {
  expect(
    messages([
      ...written(one),
      started(one),
      ended(one, "A"),
      hold(one),
      content("Done."),
      finished,
    ]),
  ).toEqual([
    { role: "assistant", content: "", toolCalls: [one] },
    { role: "tool", toolCallId: "c1", name: "read", content: "A" },
    { role: "assistant", content: "Done." },
  ]);
});

test("an interrupted round still has a result for each call; a call that was cut is none", () => {
  const told = messages([hold(one, two), started(one), started(two), ended(two, "B")]);
  expect(told.map((message) => [message.role, message.content])).toEqual([
    ["assistant", ""],
    ["tool", expect.stringContaining("interrupted")],
    ["tool", "B"],
  ]);
  expect(messages([content("Half"), ...written(one).slice(0, 2)])).toEqual([
    { role: "assistant", content: "Half" },
  ]);
  expect(messages([])).toEqual([]);
});

test("a branch is the way from the first message to its leaf", () => {
  const tree = [
    { id: "a", parentId: null },
    { id: "b", parentId: "a" },
    { id: "c", parentId: "b" },
    { id: "b2", parentId: "a" },
  ];
  expect(pathTo(tree, "c").map(({ id }) => id)).toEqual(["a", "b", "c"]);
  expect(pathTo(tree, "b2").map(({ id }) => id)).toEqual(["a", "b2"]);
  expect(pathTo(tree, null)).toEqual([]);
});

test("a call in a line", () => {
  expect(callSummary("get", '{"a":1,"b":"x"}')).toBe('get(a: 1, b: "x")');
  expect(callSummary("get", "{broken")).toBe("get({broken)");
  const digits = '{"id":1234567890123456789,"all":[4e444]}';
  expect(callSummary("get", digits)).toBe("get(id: 1234567890123456789, all: [4e444])");
  expect(callSummary("get", JSON.stringify({ a: "🌊".repeat(100) })).length).toBeLessThan(80);
  expect(callSummary("get", JSON.stringify({ a: "🌊".repeat(100) }))).toMatch(
    /^get\(a: "(🌊)+…\)$/u,
  );
});

test("a title is the first line", () => {
  expect(titleOf({ message: "  One\ntwo", files: [] })).toBe("One");
  expect(titleOf({ message: "", files: [{ name: "a.txt", text: "" }] })).toBe("a.txt");
  expect([...titleOf({ message: "🌊".repeat(80), files: [] })]).toHaveLength(60);
});
