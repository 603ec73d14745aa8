/** A decision is sent until the server has it. */

import { expect, test } from "vitest";
import { sendDecision } from "../../../src/client/index.ts";

const failure = (status: number, code = "unknown"): Error =>
  Object.assign(new Error(`status ${status}`), { status, code });

/** Each attempt fails with the next of these; then it succeeds. */
function sender(...failures: Error[]): { send: () => Promise<void>; sent: () => number } {
  let sent = 0;
  const send = async (): Promise<void> => {
    const error = failures[sent++];
    if (error !== undefined) throw error;
  };
  return { send, sent: () => sent };
}

const soon = { firstWaitMs: 1 };

test.each([0, 429, 500, 503])("again after %i", async (status) => {
  const { send, sent } = sender(failure(status), failure(status));
  expect(await sendDecision("asking_1", send, soon)).toBe("sent");
  expect(sent()).toBe(3);
});

test.each([400, 403, 404, 409])("not after %i", async (status) => {
  const { send, sent } = sender(failure(status));
  await expect(sendDecision("asking_1", send, soon)).rejects.toThrow(`status ${status}`);
  expect(sent()).toBe(1);
});

test("it may have arrived before, or somebody else was faster", async () => {
  const { send, sent } = sender(failure(0), failure(409, "already_decided"));
  expect(await sendDecision("asking_1", send, soon)).toBe("settled");
  expect(sent()).toBe(2);
});

test("somebody else was first", async () => {
  const { send } = sender(failure(409, "already_decided"));
  await expect(sendDecision("asking_1", send, soon)).rejects.toThrow("status 409");
});

test("another question is asked since", async () => {
  const { send } = sender(failure(0), failure(409, "asked_again"));
  await expect(sendDecision("asking_1", send, soon)).rejects.toThrow("status 409");
});

test("to a question without a name it is sent once", async () => {
  const { send, sent } = sender(failure(0));
  await expect(sendDecision(null, send, soon)).rejects.toThrow("status 0");
  expect(sent()).toBe(1);
});

test("ten times at most", async () => {
  const { send, sent } = sender(...Array.from({ length: 20 }, () => failure(503)));
  await expect(sendDecision("asking_1", send, { firstWaitMs: 0 })).rejects.toThrow("status 503");
  expect(sent()).toBe(10);
});

test("no longer once the run has ended", async () => {
  const over = new AbortController();
  const { send, sent } = sender(...Array.from({ length: 20 }, () => failure(503)));
  const sending = sendDecision("asking_1", send, { signal: over.signal, firstWaitMs: 60_000 });
  over.abort(new Error("over"));
  await expect(sending).rejects.toThrow("over");
  expect(sent()).toBe(1);
});
