import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { EngineUsage, SequenceWatcher } from "../../../src/engine/types.ts";
import { FermataError } from "../../../src/errors.ts";
import type { AnswerTrace, TraceStart } from "../../../src/server/answer/traces.ts";
import { Traces } from "../../../src/server/answer/traces.ts";

beforeEach(() => vi.useFakeTimers({ toFake: ["performance", "Date"] }));
afterEach(() => vi.useRealTimers());

const usage: EngineUsage = {
  promptTokens: 100,
  cachedTokens: 64,
  resumedTokens: 0,
  prefilledTokens: 36,
  recomputedTokens: 0,
  generatedTokens: 9,
};
const call = { id: "call_1", name: "weather", arguments: '{"city":"Paris"}' };

function start(id: string, owner = "anna"): TraceStart {
  const model = "tiny";
  const endpoint = "/v1/responses";
  return { id, requestId: `req_${id}`, endpoint, model, owner, startedAt: performance.now() };
}

/** A sequence whose first hold comes after 40 ms. */
function heldSequence(trace: AnswerTrace): SequenceWatcher {
  const tell = trace.watch();
  vi.advanceTimersByTime(5);
  tell({ type: "submitted" });
  vi.advanceTimersByTime(5);
  tell({ type: "admitted", reused: 64, source: "copy", total: 36, ago: 3 });
  vi.advanceTimersByTime(10);
  tell({ type: "decode" });
  vi.advanceTimersByTime(20);
  tell({ type: "hold", usage });
  return tell;
}

test("the spans of a sequence follow each other without gaps, and the rows are the engine's", () => {
  const traces = new Traces();
  const trace = traces.begin(start("resp_1"));
  const tell = heldSequence(trace);
  trace.observe({ type: "tool-start", call, server: "home" });
  vi.advanceTimersByTime(100);
  tell({ type: "extended", done: 7 });
  vi.advanceTimersByTime(100);
  const outcome = { outcome: "ok" as const, content: "sunny", citations: [], milliseconds: 200 };
  trace.observe({ type: "tool-end", call, server: "home", ...outcome });
  tell({ type: "resume" });
  tell({ type: "admitted", reused: 116, source: "hold", total: 3, ago: 50 });
  vi.advanceTimersByTime(4);
  tell({ type: "decode" });
  vi.advanceTimersByTime(6);
  const last = { ...usage, resumedTokens: 10, prefilledTokens: 46, generatedTokens: 14 };
  tell({ type: "end", reason: "end", usage: last });
  trace.observe({ type: "finish", reason: "stop", calls: [], usage: last });
  trace.end();

  const wire = traces.find("anna", "resp_1")!;
  const { spans } = wire.sequences[0]!;
  expect(spans.map(({ phase, start_ms: at, end_ms: end }) => [phase, at, end])).toEqual([
    ["prepare", 0, 5],
    ["queued", 5, 7],
    ["prefill", 7, 20],
    ["decode", 20, 40],
    ["hold", 40, 240],
    ["queued", 240, 240],
    ["resume", 240, 244],
    ["decode", 244, 250],
  ]);
  expect(spans[2]).toMatchObject({ rows: 36, reused: 64, source: "copy" });
  expect(spans[4]).toMatchObject({ rows: 7 });
  expect(spans[6]).toMatchObject({ rows: 3, reused: 116, source: "hold" });
  expect(wire).toMatchObject({ status: "complete", duration_ms: 250, dropped: 0 });
  expect(wire.rows).toEqual({
    prompt: 100,
    cached: 64,
    resumed: 10,
    prefilled: 46,
    recomputed: 0,
    generated: 14,
  });
  expect(wire.calls).toEqual([
    {
      id: "call_1",
      tool: "weather",
      server: "home",
      agent: null,
      start_ms: 40,
      end_ms: 240,
      outcome: "ok",
      approval_ms: 0,
    },
  ]);
  // By its request as well, and without what was said.
  expect(traces.find("anna", "req_resp_1")).toEqual(wire);
  expect(JSON.stringify(wire)).not.toMatch(/Paris|sunny/);
});

test("who waits names the trace that it waits for, of the same owner alone", () => {
  const traces = new Traces();
  const computing = heldSequence(traces.begin(start("resp_1")));
  const waitOf = (owner: string): unknown => {
    const tell = traces.begin(start(`resp_of_${owner}`, owner)).watch();
    tell({ type: "submitted" });
    tell({ type: "waiting", reason: "prefix", behind: computing, ago: 0 });
    return traces.find(owner, `resp_of_${owner}`)!.sequences[0]!.spans.at(-1);
  };
  expect(waitOf("anna")).toMatchObject({ waits_for: "prefix", behind: "resp_1", end_ms: null });
  expect(waitOf("bert")).toMatchObject({ waits_for: "prefix", behind: null });
});

test("the time for an approval is told apart, and a sub-agent's sequences and calls have its name", () => {
  const traces = new Traces();
  const trace = traces.begin(start("resp_1"));
  heldSequence(trace);
  trace.observe({ type: "tool-approval", call, server: "home", state: "asked" });
  vi.advanceTimersByTime(30);
  trace.observe({ type: "tool-approval", call, server: "home", state: "approved" });
  trace.observe({ type: "tool-start", call, server: "home" });
  trace.watch("reader")({ type: "submitted" });
  const report = {
    type: "agent" as const,
    agent: "reader",
    event: { type: "tool-start" as const, call, server: "files" },
  };
  trace.observe({ type: "tool-report", call, server: "agent", report });
  const wire = traces.find("anna", "resp_1")!;
  expect(wire.calls.map(({ agent, server, approval_ms: ms }) => [agent, server, ms])).toEqual([
    [null, "home", 30],
    ["reader", "files", 0],
  ]);
  expect(wire.sequences.map(({ agent }) => agent)).toEqual([null, "reader"]);
});

test("an owner's oldest traces go first, and those that go on stay", () => {
  const traces = new Traces();
  traces.begin(start("going"));
  for (let index = 0; index < 100; index++) traces.begin(start(`resp_${index}`)).end("failed");
  traces.begin(start("other", "bert")).end("failed");
  expect(traces.find("anna", "going")).toMatchObject({ status: "running", duration_ms: 0 });
  expect(traces.find("anna", "resp_36")).toBeNull();
  expect(traces.find("anna", "resp_37")).toMatchObject({ status: "failed" });
  expect(traces.list("anna", 2).map(({ id }) => id)).toEqual(["resp_99", "resp_98"]);
  expect(traces.list("bert", 100).map(({ id }) => id)).toEqual(["other"]);
});

test("more spans than are kept are counted", () => {
  const traces = new Traces();
  const tell = traces.begin(start("resp_1")).watch();
  for (let index = 0; index < 600; index++)
    tell({ type: "waiting", reason: index % 2 === 0 ? "place" : "slot", behind: null, ago: 0 });
  const wire = traces.find("anna", "resp_1")!;
  expect(wire.sequences[0]!.spans).toHaveLength(512);
  expect(wire.dropped).toBe(89);
});

test("several answers to one request are one trace, which ends with the last", async () => {
  const traces = new Traces();
  const finish = { type: "finish" as const, reason: "stop" as const, calls: [], usage };
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const parts = [Promise.resolve(), released].map((wait) =>
    traces.record(start("chatcmpl-1"), async (trace) => {
      trace.watch()({ type: "end", reason: "end", usage });
      trace.observe(finish);
      await wait;
    }),
  );
  await parts[0];
  expect(traces.find("anna", "chatcmpl-1")).toMatchObject({ status: "running" });
  release();
  await Promise.all(parts);
  expect(traces.list("anna", 10)).toHaveLength(1);
  expect(traces.find("anna", "chatcmpl-1")).toMatchObject({
    status: "complete",
    rows: { prompt: 200, generated: 18 },
  });
});

test("what throws is failed, or cancelled", async () => {
  const traces = new Traces();
  const fail = (id: string, error: Error): Promise<void> =>
    expect(traces.record(start(id), async () => Promise.reject(error))).rejects.toBe(error);
  await fail("resp_1", new Error("broken"));
  await fail("resp_2", new FermataError("cancelled", "The client has gone."));
  expect(traces.list("anna", 2).map(({ status }) => status)).toEqual(["cancelled", "failed"]);
});
