import { expect, test } from "vitest";
import type { Message } from "../../../ui/src/api/wire.ts";
import {
  branchesOf,
  newestLeaf,
  pathTo,
  siblingsOf,
} from "../../../ui/src/conversation/branches.ts";

const tree = (parents: Record<string, string | null>): Message[] =>
  Object.entries(parents).map(([id, parent_id]) => ({ id, parent_id }) as Message);

// Two questions at the start; the first has two answers, the second of them goes on.
const branches = branchesOf(
  tree({ q1: null, a1: "q1", a2: "q1", q2: "a2", a3: "q2", other: null, answer: "other" }),
);
const ids = (messages: readonly Message[]) => messages.map(({ id }) => id);

test("a path goes from the first message to the leaf", () => {
  expect(ids(pathTo(branches, "a3"))).toEqual(["q1", "a2", "q2", "a3"]);
  expect(ids(pathTo(branches, "a1"))).toEqual(["q1", "a1"]);
});

test("without a leaf, or with one that is gone, the newest branch is shown", () => {
  expect(ids(pathTo(branches, null))).toEqual(["other", "answer"]);
  expect(ids(pathTo(branches, "gone"))).toEqual(["other", "answer"]);
  expect(pathTo(branchesOf([]), null)).toEqual([]);
});

test("siblings are those that answer or continue the same message", () => {
  expect(siblingsOf(branches, branches.byId.get("a2")!)).toEqual({ index: 1, ids: ["a1", "a2"] });
  expect(siblingsOf(branches, branches.byId.get("q1")!)).toEqual({
    index: 0,
    ids: ["q1", "other"],
  });
  expect(siblingsOf(branches, branches.byId.get("q2")!)).toEqual({ index: 0, ids: ["q2"] });
});

test("a branch ends at its newest leaf", () => {
  expect(newestLeaf(branches, "q1")).toBe("a3");
  expect(newestLeaf(branches, "a1")).toBe("a1");
});

test("messages in a circle or without their parent still end", () => {
  const odd = branchesOf(tree({ a: "b", b: "a", lost: "gone" }));
  expect(pathTo(odd, "a").length).toBe(2);
  expect(ids(pathTo(odd, "lost"))).toEqual(["lost"]);
});
