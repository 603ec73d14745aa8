import { expect, test } from "vitest";
import { RecentMap } from "../../src/recent-map.ts";

test("the entries that were set last stay", () => {
  const map = new RecentMap<string, number>(2);
  map.set("a", 1).set("b", 2).set("a", 3).set("c", 4);
  expect([...map]).toEqual([
    ["a", 3],
    ["c", 4],
  ]);
});

test("large entries take the place of several, too large ones of none, and those without a size stay", () => {
  const map = new RecentMap<string, number>(10, (size) => size);
  map.set("a", 4).set("pending", 0).set("b", 5).set("c", 11);
  expect([...map.keys()]).toEqual(["a", "pending", "b"]);
  map.set("a", 6);
  expect([...map.keys()]).toEqual(["pending", "a"]);
  map.set("pending", 10);
  expect([...map.keys()]).toEqual(["pending"]);
  map.delete("pending");
  map.set("d", 5).set("e", 5);
  expect([...map.keys()]).toEqual(["d", "e"]);
});
