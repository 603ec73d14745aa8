// Answers that are no stream of a run: they are given up, not asked for again without end.
import { expect, test } from "vitest";
import { readConversation } from "../../../src/client/read-conversation.ts";

const eventStream = { "content-type": "text/event-stream; charset=utf-8" };

/** Reads until it ends, from a server that gives these answers, the last one again and again. */
async function read(...answers: (() => Response)[]) {
  let asked = 0;
  const waits: number[] = [];
  const events: unknown[] = [];
  let error: unknown = null;
  const options = {
    maxAttempts: 3,
    fetch: async () => answers[Math.min(asked++, answers.length - 1)]!(),
    onConnection: (change: { type: string; retryInMs?: number }) => {
      if (change.retryInMs !== undefined) waits.push(change.retryInMs);
    },
  };
  try {
    for await (const { event } of readConversation("/stream", options)) events.push(event);
  } catch (thrown) {
    error = thrown;
  }
  return { asked, waits, events, error };
}

test.each([
  ["a page", () => new Response("<html>", { headers: { "content-type": "text/html" } })],
  ["JSON", () => Response.json({ ok: true })],
  ["nothing", () => new Response(null, { status: 200 })],
])("%s with status 200 is an error at once", async (_name, answer) => {
  const { asked, error } = await read(answer);
  expect(asked).toBe(1);
  expect(error).toMatchObject({ name: "StreamError", status: 200, code: "no_event_stream" });
});

test("a stream that ends before anything comes is a failed attempt", async () => {
  const { asked, waits, error } = await read(() => new Response("", { headers: eventStream }));
  expect(asked).toBe(3);
  expect(waits).toEqual([500, 1000]);
  expect(error).toMatchObject({ name: "StreamError", code: "empty_stream" });
});

test("a stream of comments is a run that is silent", async () => {
  const silent = (): Response =>
    new Response("retry: 1\n: keep-alive\n\n", { headers: eventStream });
  const ended = (): Response => new Response(null, { status: 204 });
  const { asked, waits, error } = await read(silent, silent, silent, silent, ended);
  expect([asked, waits, error]).toEqual([5, [1, 1, 1, 1], null]);
});
