/** What is kept of a held round's calls, whatever comes first and however slow the store is. */

import { expect, test } from "vitest";
import { HeldRounds, type KeptRound } from "../../../../src/server/conversations/held-round.ts";
import type { BranchStore } from "../../../../src/store/types.ts";
import type { CallState } from "../../../../src/tools/oversight.ts";

const asked: CallState = { at: "asked", since: 1, mayHaveRun: false };
const decided: CallState = { at: "decided", decision: { approved: true, content: {} } };
const calls = ["call_1", "call_2"].map((id) => ({ id, name: "save", arguments: "{}" }));
const round = { messages: [], calls, ids: {}, told: 0 } as KeptRound;

/** A store whose writes end when they are let, as those of a pool of connections may: in any order. */
function slowStore() {
  const kept = new Map<string, CallState>();
  const open: { callId: string; end: (error?: Error) => void }[] = [];
  const store = {
    lasts: true,
    setRunHold: async () => {},
    setHeldCall: (_run: string, callId: string, state: CallState) =>
      new Promise<boolean>((resolve, reject) => {
        const end = (error?: Error): void => {
          if (error !== undefined) return reject(error);
          kept.set(callId, state);
          resolve(true);
        };
        open.push({ callId, end });
      }),
    isElsewhere: async () => false,
  } as unknown as BranchStore;
  const run = { id: "run", abort: new AbortController() };
  const held = new HeldRounds(store, run, { chat: {}, model: null, tools: null } as never);
  return { held, kept, open };
}

/** The last first, until nothing is written any more. */
async function endAll(open: { end: (error?: Error) => void }[]): Promise<void> {
  for (let idle = 0; idle < 20; idle++) {
    await Promise.resolve();
    const write = open.pop();
    if (write === undefined) continue;
    write.end();
    idle = 0;
  }
}

test("a decision that comes while earlier states are written stays", async () => {
  const { held, kept, open } = slowStore();
  for (const { id } of calls) await held.note(id, asked);
  const holding = held.hold(round);
  while (open.length === 0) await Promise.resolve();
  // The first call's state is being written, the second one's is not yet.
  expect(open.map(({ callId }) => callId)).toEqual(["call_1"]);
  const noted = calls.map(({ id }) => held.note(id, decided));
  await endAll(open);
  await Promise.all([holding, ...noted]);
  expect(Object.fromEntries(kept)).toEqual({ call_1: decided, call_2: decided });
});

test("a state that could not be written does not hinder the next one", async () => {
  const { held, kept, open } = slowStore();
  await held.hold(round);
  const first = held.note("call_1", asked);
  const second = held.note("call_1", decided);
  while (open.length === 0) await Promise.resolve();
  open.shift()!.end(new Error("disk I/O error"));
  await expect(first).rejects.toThrow("disk I/O error");
  await endAll(open);
  await second;
  expect(kept.get("call_1")).toEqual(decided);
});
