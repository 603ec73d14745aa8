import { expect, test } from "vitest";
import { TokenBudget } from "../../../src/agents/token-budget.ts";

test("runs side by side never get more together than there is, and half is always left", () => {
  const budget = new TokenBudget(1000);
  budget.setOwn(200);
  const first = budget.reserve();
  const second = budget.reserve();
  expect([first?.limit, second?.limit, budget.left]).toEqual([400, 200, 200]);
  first?.setOwn(150);
  expect(budget.spent).toBe(200);
  first?.close();
  expect([budget.spent, budget.left]).toEqual([350, 450]);
  second?.close();
  expect([budget.spent, budget.left]).toEqual([350, 650]);
});

test("a run's own limit holds, and what its own sub-agents spend counts as its", () => {
  const budget = new TokenBudget(1000);
  const child = budget.reserve(100)!;
  const grandchild = child.reserve()!;
  expect([child.limit, grandchild.limit]).toEqual([100, 50]);
  grandchild.setOwn(50);
  grandchild.close();
  child.setOwn(30);
  expect([child.spent, child.left]).toEqual([80, 20]);
  child.close();
  expect(budget.spent).toBe(80);
});

test("too little is refused, a small limit of the run's own is not", () => {
  expect(new TokenBudget(30).reserve()).toBeNull();
  expect(new TokenBudget(40).reserve()?.limit).toBe(20);
  expect(new TokenBudget(40).reserve(5)?.limit).toBe(5);
});

test("without a limit only the run's own counts", () => {
  const budget = new TokenBudget();
  expect(budget.left).toBe(Infinity);
  const child = budget.reserve(50)!;
  child.setOwn(50);
  expect([child.left, budget.reserve()?.limit]).toEqual([0, Infinity]);
  child.close();
  expect([budget.spent, budget.left]).toEqual([50, Infinity]);
});
