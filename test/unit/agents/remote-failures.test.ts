/** What an endpoint does wrong, and what is said of it. */

import { afterEach, describe, expect, test } from "vitest";
import { FermataError } from "../../../src/errors.ts";
import type { ChatRequest } from "../../../src/chat/types.ts";
import {
  broken,
  chunk,
  type FakeAnswer,
  silent,
  status,
  streamed,
  streamedWithoutDone,
} from "../../support/fake-endpoint.ts";
import { impatientFetch } from "../../support/impatient-fetch.ts";
import { collectGarbage } from "../../support/memory-in-use.ts";
import { answer, ask, callDelta, closeFake, fake } from "./remote-chat-world.ts";

afterEach(closeFake);

describe("what cannot be mended is an error that says so", () => {
  const html = "<html>Bad gateway</html>";
  const fails: [name: string, answers: FakeAnswer[], problem: string, tries: number][] = [
    [
      "a reason of error, no calls",
      [streamed(chunk({ content: "a" }, "error"))],
      "with an error",
      1,
    ],
    [
      "a stream that just ends",
      [streamedWithoutDone(chunk({ content: "a" }))],
      "cut its answer",
      1,
    ],
    ["a connection that breaks", [broken(chunk({ content: "a" }))], "broke off", 1],
    ["a call that breaks off", [broken(callDelta())], "broke off", 1],
    ["an error in the stream", [streamed({ error: { message: "No GPU." } })], ": No GPU.", 1],
    ["no JSON", [(response) => void response.end("hello")], "not JSON", 1],
    ["an error with status 200", [status(200, { error: "No." })], "reports an error: No.", 1],
    ["500 each time", [status(500, html)], "answered 500.", 3],
    ["529, as of servers that are overloaded", [status(529, html)], "answered 529.", 3],
    ["401", [status(401, { error: { message: "Bad key." } })], "answered 401: Bad key.", 1],
    ["a redirect", [status(302, "", { location: "http://127.0.0.1:1" })], "answered 302", 1],
  ];
  test.each(fails)("%s", async (_name, answers, problem, tries) => {
    const { error, results } = await ask(answers);
    expect(error).toBeInstanceOf(FermataError);
    expect((error as FermataError).code).toBe("endpoint_failed");
    expect((error as FermataError).message).toContain(problem);
    expect(results).toEqual([]);
    expect(fake.requests).toHaveLength(tries);
  });

  test("a silent one is given up, whatever is collected meanwhile", async () => {
    const collecting = setInterval(collectGarbage, 100);
    const { error, text } = await ask([silent(chunk({ content: "Well" }))], { timeoutMs: 2000 });
    clearInterval(collecting);
    expect((error as FermataError).message).toContain("said nothing for 2 seconds");
    expect(text).toBe("Well");
  });

  test("one that is slower than fetch would wait is waited for, and asked once", async () => {
    const fetching = await impatientFetch();
    const slow: FakeAnswer = async (response) => {
      await fetching.hasGivenUp();
      await answer(response);
    };
    const { text } = await ask([slow], { timeoutMs: 60_000 });
    await fetching.restore();
    expect([text, fake.requests.length]).toEqual(["It is 5.", 1]);
  });

  test("503, then an answer", async () => {
    const busy = status(503, "", { "retry-after": "0" });
    const { text } = await ask([busy, busy, answer]);
    expect([text, fake.requests.length]).toEqual(["It is 5.", 3]);
  });

  test.each<[field: string, request: Partial<ChatRequest>]>([
    ["logprobs", { topLogprobs: 2 }],
    ["close_at_limit", { guidance: { toolChoice: "auto", parallel: true, closeAtLimit: true } }],
  ])("%s, which another server cannot be asked for, is refused first", async (param, request) => {
    const { error } = await ask([answer], { request });
    expect(error).toMatchObject({ code: "unsupported_value", param });
    expect(fake.requests).toEqual([]);
  });
});
