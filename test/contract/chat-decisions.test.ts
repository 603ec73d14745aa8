/** `fermata chat`: a decision that did not reach the server is sent again, and answers no other question. */

import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AnswerPrinter } from "../../src/cli/chat/answer-printer.ts";
import { ChatApi } from "../../src/cli/chat/connect.ts";
import { watchRun } from "../../src/cli/chat/conversation.ts";
import type { ApprovalAnswer } from "../../src/cli/chat/decide.ts";
import { Screen } from "../../src/cli/chat/screen.ts";
import { Approvals } from "../../src/tools/approvals.ts";
import type { Tool } from "../../src/tools/types.ts";
import { eventually } from "../support/eventually.ts";
import { finish, provider } from "./fake-services.ts";
import { countedTool, holds, restartWorld } from "./restart-world.ts";

const served = restartWorld([{ type: "content", text: "Saved." }, finish("stop")]);
const { send } = served;
let ran: string[];
beforeEach(() => {
  ran = [];
});
afterEach(() => vi.restoreAllMocks());

const parts = (tool: Partial<Tool> = {}) => ({
  tools: provider(countedTool(ran, "save", { approval: "always", ...tool })),
  approvals: new Approvals(),
});

const listen = (port = 0): Promise<string> => served.world.app.listen({ port, host: "127.0.0.1" });

/** A run that asks, and a person who watches it and answers with `approve`. */
async function watched(approve: () => Promise<ApprovalAnswer>) {
  const url = await listen();
  const { port } = served.world.app.server.address() as AddressInfo;
  served.world.chat.script = holds([{ id: "call_1", name: "save", arguments: "{}" }]);
  const { body: conversation } = await send("POST", "/api/conversations", {});
  const path = `/api/conversations/${conversation.id}/runs`;
  const { body: started } = await send("POST", path, { message: "Save." });
  const shown: string[] = [];
  const screen = new Screen({ write: (text) => shown.push(text) }, {});
  const stop = new AbortController();
  const watching = watchRun(new ChatApi(url, undefined), conversation.id, started.run_id, {
    printer: new AnswerPrinter({ text: screen, cards: screen, showReasoning: false }),
    approve,
    resendMs: 5,
    stop: stop.signal,
    leave: new AbortController().signal,
  });
  return { watching, port, stop, shown: () => shown.join("") };
}

/** Answers of a proxy to decisions: after the server's own, or in place of it. */
function proxied(status: number, { reaches, times }: { reaches: boolean; times: number }) {
  const { fetch: plain } = globalThis;
  let sent = 0;
  vi.spyOn(globalThis, "fetch").mockImplementation(async (url, init) => {
    if (!String(url).includes("/api/approvals/")) return await plain(url, init);
    sent += 1;
    if (sent > times) return await plain(url, init);
    if (reaches) await plain(url, init);
    if (status === 0) throw new TypeError("fetch failed");
    return new Response("<html>Bad Gateway</html>", { status });
  });
  return () => sent;
}

test("it waits for a server that is being restarted", async () => {
  await served.restart(parts());
  let answer!: (given: ApprovalAnswer) => void;
  const answered = new Promise<ApprovalAnswer>((resolve) => (answer = resolve));
  const approve = vi.fn(() => answered);
  const { watching, port } = await watched(approve);
  await eventually(() => expect(approve).toHaveBeenCalled());
  await served.end();
  const sent = proxied(0, { reaches: false, times: 0 });
  answer({ decision: "approve" });
  await eventually(() => expect(sent()).toBeGreaterThan(1));
  await served.begin(parts());
  await listen(port);
  expect(await watching).toMatchObject({ end: { status: "complete" } });
  expect(approve).toHaveBeenCalledTimes(1);
  expect(ran).toEqual(["save"]);
});

test("it waits until a run that goes on after a restart asks again", async () => {
  await served.restart(parts());
  let answer!: (given: ApprovalAnswer) => void;
  const answered = new Promise<ApprovalAnswer>((resolve) => (answer = resolve));
  const approve = vi.fn(() => answered);
  const { watching, port } = await watched(approve);
  await eventually(() => expect(approve).toHaveBeenCalled());
  await served.end();
  // The server serves before that of its tools has started.
  let start = (): void => {};
  const started = new Promise<void>((resolve) => (start = resolve));
  const { tools, approvals } = parts();
  await served.begin({ tools: { ...tools, missing: () => started.then(() => []) }, approvals });
  await listen(port);
  const { fetch: plain } = globalThis;
  const replies: number[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (url, init) => {
    const reply = await plain(url, init);
    if (String(url).includes("/api/approvals/")) replies.push(reply.status);
    return reply;
  });
  answer({ decision: "approve" });
  await eventually(() => expect(replies).toContain(503));
  expect(approvals.pending()).toEqual([]);
  start();
  expect(await watching).toMatchObject({ end: { status: "complete" } });
  expect(approve).toHaveBeenCalledTimes(1);
  expect(ran).toEqual(["save"]);
});

test.each([0, 502, 503])("one whose acknowledgement was lost (%i) counts once", async (status) => {
  await served.restart(parts());
  const sent = proxied(status, { reaches: true, times: 1 });
  const { watching, shown } = await watched(async () => ({ decision: "approve" }));
  expect(await watching).toMatchObject({ end: { status: "complete" } });
  await eventually(() => expect(sent()).toBeGreaterThan(0));
  expect(ran).toEqual(["save"]);
  expect(shown()).not.toContain("did not reach");
});

test("after ten attempts the person is told", async () => {
  await served.restart(parts());
  const sent = proxied(502, { reaches: false, times: 99 });
  const { watching, stop, shown } = await watched(async () => ({ decision: "approve" }));
  await eventually(() =>
    expect(shown()).toContain("Your answer about save did not reach the server"),
  );
  expect(sent()).toBe(10);
  stop.abort();
  await watching;
  expect(ran).toEqual([]);
});

test("it is sent once to a server that names no question", async () => {
  await served.restart(parts());
  const sent = proxied(502, { reaches: false, times: 99 });
  const { apply } = AnswerPrinter.prototype;
  vi.spyOn(AnswerPrinter.prototype, "apply").mockImplementation(function (
    this: AnswerPrinter,
    event,
  ) {
    for (const detail of event.details ?? [])
      if (detail.type === "approval") delete detail.asking_id;
    apply.call(this, event);
  });
  const { watching, stop, shown } = await watched(async () => ({ decision: "approve" }));
  await eventually(() => expect(shown()).toContain("did not reach the server"));
  expect(sent()).toBe(1);
  stop.abort();
  await watching;
});
