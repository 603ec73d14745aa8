import { expect, test } from "vitest";
import { HeldCalls } from "../../../src/server/responses/calls/held.ts";

test("a call that begins after its response was cancelled does not wait for its output", async () => {
  const calls = new HeldCalls(60_000, () => {});
  expect(await calls.wait("call_1", AbortSignal.abort())).toEqual({
    content: "Error: cancelled.",
    isError: true,
  });
});
