import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { Approvals } from "../../../src/tools/approvals.ts";
import { CallAudit } from "../../../src/tools/call-audit.ts";
import type { ApprovalState, CallState, ToolOversight } from "../../../src/tools/oversight.ts";
import { runTool } from "../../../src/tools/tool-run.ts";
import type { Tool, ToolCallContext } from "../../../src/tools/types.ts";
import { eventually } from "../../support/eventually.ts";

const call = { id: "call_1", name: "delete_file", arguments: '{"path":"a"}' };
const never = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), "fermata-audit-"));
afterAll(() => rmSync(folder, { recursive: true }));

let ran = 0;
const tool: Tool = {
  definition: { name: "delete_file", parameters: {} },
  server: "files",
  approval: "always",
  call: async () => ({ content: `deleted ${++ran}`, isError: false }),
};

async function run(oversight?: Partial<ToolOversight>, signal = never) {
  const states: ApprovalState[] = [];
  const before = ran;
  const { outcome, content } = await runTool(call, [tool], {
    timeoutMs: 1000,
    signal,
    report: () => {},
    onApproval: (state) => states.push(state),
    oversight:
      oversight === undefined
        ? undefined
        : { owner: "me", approvals: null, audit: null, ...oversight },
  });
  return { outcome, content, states, ran: ran - before };
}

test("a call whose consent comes after the time for all tools does not begin", async () => {
  const before = ran;
  const { outcome, content } = await runTool(call, [{ ...tool, approval: "never" }], {
    timeoutMs: 1000,
    deadline: { at: performance.now(), seconds: 5 },
    signal: never,
    report: () => {},
  });
  expect([outcome, ran - before]).toEqual(["timeout", 0]);
  expect(content).toContain("the limit of 5 seconds for the tools of one answer is reached");
});

test.each(["decided", "ended"] as const)(
  "a decision that an earlier process was told comes too late here: %s",
  async (at) => {
    const approvals = new Approvals();
    const states = {
      decided: { at: "decided", decision: { approved: true, content: {} } },
      ended: { at: "ended", run: { outcome: "ok", content: "done", isError: false } },
    } as const;
    const journal = {
      known: () => states[at] as CallState,
      note: async () => {},
      confirm: async () => {},
    };
    expect((await run({ approvals, journal })).ran).toBe(at === "decided" ? 1 : 0);
    const decide = (owner: string) => approvals.decide(owner, call.id, { decision: "approve" });
    await expect(decide("me")).rejects.toMatchObject({ code: "already_decided" });
    await expect(decide("other")).rejects.toMatchObject({ code: "not_found" });
  },
);

test("a call that ended in an earlier process, and that nobody is asked about, was not decided", async () => {
  const approvals = new Approvals();
  const settle = vi.fn(async () => {});
  approvals.showOn({ show: async () => {}, remove: async () => {}, settle });
  const run = { outcome: "ok", content: "done", citations: [], milliseconds: 1 } as const;
  const journal = {
    known: (): CallState => ({ at: "ended", run }),
    note: async () => {},
    confirm: async () => {},
  };
  for (const approval of ["never", "always"] as const) {
    const oversight = { owner: "me", approvals, audit: null, journal };
    const options = { timeoutMs: 1000, signal: never, report: () => {}, oversight };
    await runTool(call, [{ ...tool, approval }], options);
    const wasDecided = approval === "always";
    expect(approvals.hasDecided("me", call.id)).toBe(wasDecided);
    expect(settle).toHaveBeenCalledTimes(wasDecided ? 1 : 0);
  }
});

/** A call that is asked for and then approved, while its decision is being kept. */
async function keeping(signal = never) {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const approvals = new Approvals();
  let settle!: { kept: () => void; failed: (error: Error) => void };
  const keep = (): Promise<void> =>
    new Promise((kept, failed) => {
      settle = { kept, failed };
    });
  const { name: toolName, arguments: args } = call;
  const request = { callId: "call_1", owner: "me", server: "files", toolName, arguments: args };
  const asked = approvals.ask({ ...request, keep }, signal);
  await Promise.resolve();
  const told = approvals.decide("me", "call_1", { decision: "approve" });
  told.catch(() => {});
  return { approvals, asked, told, ...settle };
}

describe("a decision that is being kept", () => {
  afterEach(() => void vi.useRealTimers());

  test("came in time", async () => {
    const { approvals, asked, told, kept } = await keeping();
    vi.advanceTimersByTime(approvals.timeoutMs);
    kept();
    await told;
    expect(await asked).toEqual({ approved: true, content: {} });
  });

  test("and cannot be: the call is decided by what happened meanwhile, and waits no more", async () => {
    const late = await keeping();
    vi.advanceTimersByTime(late.approvals.timeoutMs);
    late.failed(new Error("disk I/O error"));
    await expect(late.told).rejects.toThrow("disk I/O error");
    expect(await late.asked).toEqual({ approved: false, by: "timeout" });
    expect(late.approvals.pending()).toEqual([]);

    const abort = new AbortController();
    const cancelled = await keeping(abort.signal);
    abort.abort();
    expect(await cancelled.asked).toEqual({ approved: false, by: "cancelled" });
    cancelled.failed(new Error("disk I/O error"));
    await expect(cancelled.told).rejects.toThrow("disk I/O error");
    expect(cancelled.approvals.pending()).toEqual([]);
    // Nothing was decided: another process may have the call.
    expect(cancelled.approvals.hasDecided("me", "call_1")).toBe(false);
  });
});

describe("a call that must be approved", () => {
  test("once denied, the same is not asked for again in its answer", async () => {
    const approvals = new Approvals();
    const oversight = { approvals, denials: new Set<string>() };
    const first = run(oversight);
    await eventually(() => expect(approvals.pending("me")).toHaveLength(1));
    approvals.decide("me", "call_1", { decision: "deny", reason: "no" });
    await first;
    const again = await run(oversight);
    expect(again).toMatchObject({ outcome: "denied", states: [], ran: 0 });
    expect(again.content).toContain("the user denied the same call before");
    expect(approvals.counts.asked).toBe(1);
    const other = run({ approvals, denials: new Set() });
    await eventually(() => expect(approvals.pending("me")).toHaveLength(1));
    approvals.decide("me", "call_1", { decision: "approve" });
    expect(await other).toMatchObject({ outcome: "ok" });
  });

  test("waits, is listed, and runs once a person agrees", async () => {
    const approvals = new Approvals();
    const running = run({ approvals });
    await eventually(() => expect(approvals.pending("me")).toHaveLength(1));
    expect(approvals.pending()[0]).toEqual({
      callId: "call_1",
      askingId: expect.any(String),
      owner: "me",
      server: "files",
      toolName: "delete_file",
      arguments: '{"path":"a"}',
      askedAt: expect.any(Number),
    });
    approvals.decide("me", "call_1", { decision: "approve" });
    expect(await running).toMatchObject({ outcome: "ok", states: ["asked", "approved"], ran: 1 });
    expect(approvals.pending()).toEqual([]);
    expect(approvals.counts).toEqual({ asked: 1, approved: 1, denied: 0 });
  });

  test("is not run when it is denied, and the model reads why", async () => {
    const approvals = new Approvals();
    const running = run({ approvals });
    await eventually(() => expect(approvals.pending()).toHaveLength(1));
    approvals.decide("me", "call_1", { decision: "deny", reason: "that is my diary." });
    expect(await running).toEqual({
      outcome: "denied",
      content:
        "Error: not run: the user denied it: that is my diary. Do not try it again: answer with what you have, or ask the user.",
      states: ["asked", "denied"],
      ran: 0,
    });
  });

  test("is denied when nobody answers in time", async () => {
    const approvals = new Approvals({ timeoutMs: 20 });
    expect(await run({ approvals })).toMatchObject({ outcome: "denied", ran: 0 });
    expect(approvals.pending()).toEqual([]);
    expect(approvals.counts.denied).toBe(1);
  });

  test("is not run where nobody can be asked", async () => {
    expect(await run()).toMatchObject({ outcome: "denied", states: [], ran: 0 });
    expect(await run({})).toMatchObject({ outcome: "denied", states: [], ran: 0 });
  });

  test("ends with the request that made it", async () => {
    const approvals = new Approvals();
    const controller = new AbortController();
    const running = run({ approvals }, controller.signal);
    await eventually(() => expect(approvals.pending()).toHaveLength(1));
    controller.abort();
    expect(await running).toMatchObject({ outcome: "cancelled", ran: 0 });
    expect(approvals.pending()).toEqual([]);
  });

  test("has an id of its own, even if another call has the same", async () => {
    const approvals = new Approvals();
    const both = [run({ approvals }), run({ approvals })];
    await eventually(() =>
      expect(approvals.pending().map(({ callId }) => callId)).toEqual(["call_1", "call_1.2"]),
    );
    approvals.decide("me", "call_1.2", { decision: "approve" });
    approvals.decide("me", "call_1", { decision: "deny" });
    expect((await Promise.all(both)).map(({ outcome }) => outcome)).toEqual(["denied", "ok"]);
  });

  test("is shown to the others after the question before it has gone", async () => {
    const approvals = new Approvals();
    const told: string[] = [];
    const later = (what: string) => async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      told.push(what);
    };
    approvals.showOn({
      show: async () => void told.push("show"),
      remove: later("remove"),
      settle: async () => {},
    });
    for (let count = 0; count < 2; count++) {
      const running = run({ approvals });
      await eventually(() => expect(told).toHaveLength(2 * count + 1));
      approvals.decide("me", "call_1", { decision: "approve" });
      await running;
    }
    await eventually(() => expect(told).toEqual(["show", "remove", "show", "remove"]));
  });

  test("is decided by its owner, once", async () => {
    const approvals = new Approvals();
    const running = run({ approvals });
    await eventually(() => expect(approvals.pending()).toHaveLength(1));
    const decide = (owner: string, id: string) =>
      approvals.decide(owner, id, { decision: "approve" });
    await expect(decide("you", "call_1")).rejects.toMatchObject({ code: "not_found" });
    await expect(decide("me", "call_2")).rejects.toMatchObject({ code: "not_found" });
    expect(approvals.pending("you")).toEqual([]);
    approvals.decide("me", "call_1", { decision: "deny" });
    await expect(decide("me", "call_1")).rejects.toMatchObject({ code: "already_decided" });
    await expect(decide("you", "call_1")).rejects.toMatchObject({ code: "not_found" });
    expect(await running).toMatchObject({ outcome: "denied", ran: 0 });
    await expect(decide("me", "call_1")).rejects.toMatchObject({ code: "already_decided" });
  });
});

/** What the log says, line by line. */
function linesOf(path: string): Record<string, unknown>[] {
  return readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

test("the audit log says that a call will run, and who approved it, before it runs", async () => {
  const path = join(folder, "intent.jsonl");
  const audit = new CallAudit(path, () => {});
  const approvals = new Approvals();
  const atStart: Record<string, unknown>[][] = [];
  const watched: Tool = {
    ...tool,
    call: async () => {
      atStart.push(linesOf(path));
      return { content: "gone", isError: false };
    },
  };
  const oversight = { owner: "0123456789abcdefXYZ", approvals, audit };
  const options = { timeoutMs: 1000, signal: never, report: () => {}, oversight };
  const asked = runTool(call, [watched], options);
  await eventually(() => expect(approvals.pending()).toHaveLength(1));
  expect(readFileSync(path, "utf8")).toBe("");
  approvals.decide(oversight.owner, "call_1", { decision: "approve" });
  await asked;
  await runTool({ ...call, id: "call_2" }, [{ ...watched, approval: "never" }], options);
  const start = { event: "start", call_id: "call_1", tool: "delete_file", arguments_bytes: 12 };
  expect(atStart[0]).toEqual([
    expect.objectContaining({ ...start, approved_by: "0123456789abcdef" }),
  ]);
  expect(atStart[0]![0]).not.toHaveProperty("outcome");
  expect(atStart[1]).toHaveLength(3);
  expect(linesOf(path)).toMatchObject([
    { event: "start", call_id: "call_1", approved_by: "0123456789abcdef" },
    { event: "end", call_id: "call_1", approved_by: "0123456789abcdef", outcome: "ok" },
    { event: "start", call_id: "call_2", approved_by: null },
    { event: "end", call_id: "call_2", approved_by: null, outcome: "ok" },
  ]);
  await audit.close();
});

test("the audit log goes on in a new file once it was renamed, and loses no line", async () => {
  const path = join(folder, "rotated.jsonl");
  const audit = new CallAudit(path, () => {});
  const entry = { call, server: "files", owner: "me", approvedBy: null };
  const lines = Array.from({ length: 50 }, () => audit.started(entry));
  await lines[0];
  renameSync(path, `${path}.1`);
  lines.push(...Array.from({ length: 50 }, () => audit.started(entry)));
  await audit.reopen();
  lines.push(...Array.from({ length: 50 }, () => audit.started(entry)));
  await Promise.all(lines);
  await audit.close();
  const [before, after] = [linesOf(`${path}.1`).length, linesOf(path).length];
  expect(before + after).toBe(150);
  expect(before).toBeGreaterThanOrEqual(50);
  expect(after).toBeGreaterThanOrEqual(50);
});

test.runIf(existsSync("/dev/full"))(
  "lines of a full disk are counted, and the call runs",
  async () => {
    const errors: unknown[] = [];
    const audit = new CallAudit("/dev/full", (error) => errors.push(error));
    const oversight = { owner: "me", approvals: null, audit };
    const options = { timeoutMs: 1000, signal: never, report: () => {}, oversight };
    const ended = await runTool(call, [{ ...tool, approval: "never" }], options);
    expect(ended.outcome).toBe("ok");
    expect(audit.lostLines).toBe(2);
    expect(errors).toMatchObject([{ code: "ENOSPC" }, { code: "ENOSPC" }]);
    await audit.close();
  },
);

test.each([
  ["not read-only, no policy", {}, true, "denied"],
  ["not read-only, no policy, nobody looks on", {}, false, "ok"],
  ["read-only", { readOnly: true }, true, "ok"],
  ["never by policy", { approval: "never" as const }, true, "ok"],
  ["always by policy", { readOnly: true, approval: "always" as const }, false, "denied"],
])(
  "a tool that is %s: %j, a person looks on: %s: %s",
  async (_name, parts, asksPerson, outcome) => {
    const { approval: _policy, ...plain } = tool;
    const oversight = { owner: "me", approvals: null, audit: null, asksPerson };
    const options = { timeoutMs: 1000, signal: never, report: () => {}, oversight };
    const run = await runTool(call, [{ ...plain, ...parts }], options);
    expect(run.outcome).toBe(outcome);
  },
);

test("a person is asked about what would run: without nulls that the schema refuses", async () => {
  const approvals = new Approvals();
  const path = join(folder, "nulls.jsonl");
  const audit = new CallAudit(path, () => {});
  const written = {
    ...call,
    arguments: '{"path":"a","force":null}',
    problem: "/force must be boolean",
  };
  const ended = runTool({ ...written, withoutNulls: call.arguments }, [tool], {
    timeoutMs: 1000,
    signal: never,
    report: () => {},
    oversight: { owner: "me", approvals, audit },
  });
  await eventually(() =>
    expect(approvals.pending("me")).toMatchObject([{ arguments: call.arguments }]),
  );
  await approvals.decide("me", call.id, { decision: "approve" });
  expect((await ended).outcome).toBe("ok");
  await audit.close();
  const { arguments_sha256 } = JSON.parse(readFileSync(path, "utf8").trim().split("\n").at(-1)!);
  expect(arguments_sha256).toBe(createHash("sha256").update(call.arguments).digest("hex"));
});

test("the audit log: sizes and hashes of every call, and none of its words", async () => {
  const path = join(folder, "audit.jsonl");
  const audit = new CallAudit(path, () => {});
  const approvals = new Approvals({ timeoutMs: 1 });
  await run({ audit, approvals, owner: "0123456789abcdefXYZ" });
  const unknown = { id: "call_2", name: "no_such", arguments: "{}" };
  const oversight = { owner: "me", approvals: null, audit };
  await runTool(unknown, [tool], { timeoutMs: 10, signal: never, report: () => {}, oversight });
  await audit.close();
  const text = readFileSync(path, "utf8");
  const [first, second] = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(first).toEqual({
    event: "end",
    approved_by: null,
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    call_id: "call_1",
    owner: "0123456789abcdef",
    server: "files",
    tool: "delete_file",
    arguments_bytes: 12,
    arguments_sha256: createHash("sha256").update(call.arguments).digest("hex"),
    result_bytes: expect.any(Number),
    result_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    milliseconds: 0,
    outcome: "denied",
  });
  expect(second).toMatchObject({ server: "unknown", tool: "no_such", outcome: "error" });
  expect(text).not.toContain("path");
  if (process.platform !== "win32") expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("an audit log that cannot be written ends the start", () => {
  expect(() => new CallAudit(join(folder, "no", "such"), () => {})).toThrow(
    expect.objectContaining({ code: "invalid_option", param: "audit-log" }),
  );
});

describe("a call's time", () => {
  const bounded = (
    body: (context: ToolCallContext) => Promise<string>,
    limits: { timeoutMs: number; totalTimeoutMs?: number },
  ) =>
    runTool(
      call,
      [
        {
          ...tool,
          approval: "never",
          call: async (_args, context) => ({ content: await body(context), isError: false }),
        },
      ],
      { ...limits, signal: never, report: () => {} },
    );
  /** Reports every 10 ms until it is stopped. */
  const chatty = (context: ToolCallContext, rounds: number): Promise<string> =>
    new Promise((resolve) => {
      let count = 0;
      const timer = setInterval(() => {
        context.report({ type: "progress", progress: ++count });
        if (count < rounds && !context.signal.aborted) return;
        clearInterval(timer);
        resolve(context.signal.aborted ? String(context.signal.reason.name) : "done");
      }, 10);
    });

  test("starts anew with every sign of life", async () => {
    const run = await bounded((context) => chatty(context, 30), { timeoutMs: 500 });
    expect(run).toMatchObject({ outcome: "ok", content: "done" });
  });

  test("has an end all the same", async () => {
    let reason = "";
    const run = await bounded(async (context) => (reason = await chatty(context, 1e9)), {
      timeoutMs: 500,
      totalTimeoutMs: 700,
    });
    expect(run).toMatchObject({
      outcome: "timeout",
      content: 'Error: the tool "delete_file" took more than 0.7 seconds.',
    });
    await eventually(() => expect(reason).toBe("TimeoutError"));
  });
});
