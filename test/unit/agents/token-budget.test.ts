import { expect, test } from "vitest";
import { MeteredChat, TokenBudget } from "../../../src/agents/token-budget.ts";

test("runs side by side never get more together than there is, and half is always left", () => {
  const budget = new TokenBudget(1000);
  budget.addOwn(200);
  const first = budget.reserve();
  const second = budget.reserve();
  expect([first?.limit, second?.limit, budget.left]).toEqual([400, 200, 200]);
  first?.addOwn(150);
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
  grandchild.addOwn(50);
  grandchild.close();
  child.addOwn(30);
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
  child.addOwn(50);
  expect([child.left, budget.reserve()?.limit]).toEqual([0, Infinity]);
  child.close();
  expect([budget.spent, budget.left]).toEqual([50, Infinity]);
});

test("what a tool draws from the run's model is the run's own, beside its rounds", async () => {
  const budget = new TokenBudget(1000);
  const counts = [
    { type: "hold", usage: { generatedTokens: 100 } },
    { type: "finish", usage: { generatedTokens: 130 } },
  ];
  const asked = [{ type: "finish", usage: { generatedTokens: 40 } }];
  const scripts = [counts, asked];
  const generate = () => scripts.shift()![Symbol.iterator]();
  const chat = new MeteredChat({ generate } as never, budget);
  const rounds = chat.generate({} as never)[Symbol.asyncIterator]();
  await rounds.next();
  expect(budget.left).toBe(900);
  for await (const _ of chat.generate({} as never));
  expect(budget.left).toBe(860);
  await rounds.next();
  expect(budget.left).toBe(830);
});
