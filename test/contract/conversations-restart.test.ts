/** A run whose calls wait or run outlives the server: the next one goes on with it as if nothing had been, and runs no call twice. */

import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ToolCall } from "../../src/chat/types.ts";
import { AnswerPrinter } from "../../src/cli/chat/answer-printer.ts";
import { ChatApi } from "../../src/cli/chat/connect.ts";
import { watchRun } from "../../src/cli/chat/conversation.ts";
import { Screen } from "../../src/cli/chat/screen.ts";
import { Approvals } from "../../src/tools/approvals.ts";
import type { Tool } from "../../src/tools/types.ts";
import { eventually } from "../support/eventually.ts";
import { finish, provider, type ScriptStep } from "./fake-services.ts";
import type { Json } from "./responses-world.ts";
import { countedTool, holds, restartWorld } from "./restart-world.ts";
import { ended, type Run } from "./ended-run.ts";

const save: ToolCall = { id: "call_1", name: "save", arguments: `{"text":"milk"}` };
const look: ToolCall = { id: "call_2", name: "look", arguments: "{}" };
const said: ScriptStep[] = [
  { type: "reasoning", text: "I must save." },
  { type: "content", text: "Let me see." },
];

const served = restartWorld([{ type: "content", text: "Saved." }, finish("stop")]);
const { asked, send } = served;
let ran: string[];
beforeEach(() => {
  ran = [];
});
const tool = (name: string, options?: Parameters<typeof countedTool>[2]): Tool =>
  countedTool(ran, name, options);

const restart = (tools: Tool[], approvals = new Approvals()): Promise<void> =>
  served.restart({ tools: provider(...tools), approvals });

/** A run that has come to its calls. */
function run(...calls: ToolCall[]): Promise<Run> {
  return runWith({}, calls);
}

async function runWith(settings: object, calls: ToolCall[]): Promise<Run> {
  served.world.chat.script = holds(calls, ...said);
  const { body: conversation } = await send("POST", "/api/conversations", {
    instructions: "Be short.",
    ...settings,
  });
  const { body: started } = await send("POST", `/api/conversations/${conversation.id}/runs`, {
    message: "Save milk.",
    temperature: 0.25,
    seed: 7,
  });
  return { id: conversation.id, runId: started.run_id };
}

const decide = (decision: "approve" | "deny", callId = "call_1") =>
  send("POST", `/api/approvals/${callId}`, { decision });

const read = (): Json => served.world.chat.requests.at(-1)!.messages;
const turn = (...toolCalls: ToolCall[]) => ({
  role: "assistant",
  content: "Let me see.",
  reasoning: "I must save.",
  toolCalls,
});

test("a call that waits for a person is approved after the restart, and the run ends", async () => {
  const tools = [tool("save", { approval: "always" })];
  await restart(tools);
  const { id, runId } = await run(save);
  const before = await asked();
  await restart(tools);
  await restart(tools);
  expect(await asked()).toEqual(before);
  expect((await send("GET", `/api/conversations/${id}`)).body).toMatchObject({ run_id: runId });
  expect(served.world.chat.requests).toEqual([]);

  expect((await decide("approve")).status).toBe(200);
  const { message, events, state } = await ended(served.world, { id, runId });
  expect(ran).toEqual(["save"]);
  expect(message).toMatchObject({
    status: "complete",
    message: "Let me see.\n\nSaved.",
    reasoning: "I must save.",
  });
  expect(message.tool_calls).toMatchObject([
    { call_id: "call_1", tool_response: "save: done", tool_call_details: { approval: "approved" } },
  ]);
  expect(state.message).toBe(message.message);
  const approvals = events.flatMap(({ details = [] }) =>
    details.flatMap((detail) => (detail.type === "approval" ? [detail.state] : [])),
  );
  expect(approvals).toEqual(["asked", "approved"]);
  expect(read()).toEqual([
    { role: "system", content: "Be short." },
    { role: "user", content: "Save milk." },
    turn(save),
    { role: "tool", toolCallId: "call_1", name: "save", content: "save: done" },
  ]);
  expect(served.world.chat.requests.at(-1)!.sampling).toMatchObject({ temperature: 0.25, seed: 7 });
  expect(await served.store.branches.takeInterrupted()).toEqual([]);
});

test("a chosen tool that was gone when the run began does not end it after the restart", async () => {
  const tools = [tool("save", { approval: "always" })];
  await restart(tools);
  const { id, runId } = await runWith({ tools: ["gone", "save"] }, [save]);
  await asked();
  await restart(tools);
  await asked();
  expect((await decide("approve")).status).toBe(200);
  expect((await ended(served.world, { id, runId })).message).toMatchObject({ status: "complete" });
  expect(ran).toEqual(["save"]);
});

test("a call that ran is not run again, one that reads is, and one that had ended keeps its result", async () => {
  const note: ToolCall = { id: "call_3", name: "note", arguments: "{}" };
  const tools = (hangs: boolean) => [
    tool("save", { hangs }),
    tool("look", { readOnly: true, hangs }),
    tool("note"),
  ];
  await restart(tools(true));
  const { id, runId } = await run(save, look, note);
  await eventually(async () => {
    const { body } = await send("GET", `/api/conversations/${id}`);
    expect(body.messages.at(-1).tool_calls.at(-1)).toMatchObject({ tool_response: "note: done" });
    // Each call begins once its intent is stored, which may take one longer than another.
    expect(ran.toSorted()).toEqual(["look", "note", "save"]);
  });
  await restart(tools(false));
  const { message } = await ended(served.world, { id, runId });
  expect(ran.toSorted()).toEqual(["look", "look", "note", "save"]);
  const interrupted =
    "Error: this call was interrupted while it ran. It may have taken effect, and was not run again.";
  expect(read().slice(2)).toEqual([
    turn(save, look, note),
    { role: "tool", toolCallId: "call_1", name: "save", content: interrupted },
    { role: "tool", toolCallId: "call_2", name: "look", content: "look: done" },
    { role: "tool", toolCallId: "call_3", name: "note", content: "note: done" },
  ]);
  expect(message.tool_calls).toHaveLength(3);
  expect(message).toMatchObject({ status: "complete", message: "Let me see.\n\nSaved." });
});

test("a person is asked again about a call that may have run", async () => {
  const tools = (hangs: boolean) => [tool("save", { approval: "always", hangs })];
  await restart(tools(true));
  const { id, runId } = await run(save);
  expect(await asked()).not.toHaveProperty("may_have_run");
  await decide("approve");
  await eventually(() => expect(ran).toEqual(["save"]));
  await restart(tools(false));
  expect(await asked()).toMatchObject({ call_id: "call_1", may_have_run: true });
  await restart(tools(false));
  expect(await asked()).toMatchObject({ call_id: "call_1", may_have_run: true });
  expect(ran).toEqual(["save"]);
  await decide("deny");
  const { message } = await ended(served.world, { id, runId });
  expect(ran).toEqual(["save"]);
  expect(message).toMatchObject({ status: "complete" });
  expect(read().at(-1).content).toContain("the user denied it");
});

test("a decision that is sent again does not answer what was asked since", async () => {
  const tools = (hangs: boolean) => [tool("save", { approval: "always", hangs })];
  const approve = (askingId?: string) =>
    send("POST", "/api/approvals/call_1", { decision: "approve", asking_id: askingId });
  await restart(tools(true));
  const { id, runId } = await run(save);
  const ids: string[] = [];
  for (const times of [1, 2]) {
    const { asking_id: askingId } = await asked();
    ids.push(askingId);
    expect((await approve(askingId)).status).toBe(200);
    await eventually(() => expect(ran).toHaveLength(times));
    // The call does not wait until what is told of it is stored.
    await eventually(async () => {
      const stored = await served.store.branches.runEvents(runId, 0);
      expect(stored.filter(({ body }) => body.includes('"approved"'))).toHaveLength(times);
    });
    await restart(tools(true));
    const again = await asked();
    expect(again).toMatchObject({ call_id: "call_1", may_have_run: true });
    // Neither one of before, nor one of a client that has not seen what is asked.
    for (const repeated of [...ids, undefined])
      expect(await approve(repeated)).toMatchObject({
        status: 409,
        body: {
          error: {
            code: "asked_again",
            param: "asking_id",
            message: expect.stringMatching(/may have run.*GET \/api\/approvals.*"asking_id"/),
          },
        },
      });
    await restart(tools(times === 1));
    expect(await asked()).toEqual(again);
    expect(ran).toHaveLength(times);
  }
  const { asking_id: last } = await asked();
  expect((await approve(last)).status).toBe(200);
  const { message, events } = await ended(served.world, { id, runId });
  expect(message).toMatchObject({ status: "complete" });
  expect(ran).toHaveLength(3);
  const told = events.flatMap(({ details = [] }) =>
    details.flatMap((detail) =>
      detail.type === "approval" ? [[detail.state, detail.asking_id, detail.may_have_run]] : [],
    ),
  );
  expect(told).toEqual(
    [...ids, last].flatMap((askingId, index) => [
      ["asked", askingId, index === 0 ? undefined : true],
      ["approved", undefined, undefined],
    ]),
  );
});

test("`fermata chat` asks anew about a call that may have run", async () => {
  const tools = (hangs: boolean) => [tool("save", { approval: "always", hangs })];
  await restart(tools(true));
  const listen = (port = 0) => served.world.app.listen({ port, host: "127.0.0.1" });
  const url = await listen();
  const { port } = served.world.app.server.address() as AddressInfo;
  const { id, runId } = await run(save);
  const nowhere = new Screen({ write: () => {} }, {});
  const questions: (boolean | undefined)[] = [];
  const watching = watchRun(new ChatApi(url, undefined), id, runId, {
    printer: new AnswerPrinter({ text: nowhere, cards: nowhere, showReasoning: false }),
    approve: async ({ may_have_run: mayHaveRun }) => {
      questions.push(mayHaveRun);
      return { decision: "approve" };
    },
    stop: new AbortController().signal,
    leave: new AbortController().signal,
  });
  await eventually(() => expect(ran).toEqual(["save"]));
  await restart(tools(false));
  await listen(port);
  expect(await watching).toMatchObject({ end: { status: "complete" } });
  expect(questions).toEqual([undefined, true]);
  expect(ran).toEqual(["save", "save"]);
});

describe("the time for the decision goes on while no server runs", () => {
  afterEach(() => vi.useRealTimers());
  /** A run that asks, and whose next server begins so many seconds later. */
  async function away(seconds: number): Promise<Run> {
    vi.useFakeTimers({ toFake: ["Date"] });
    const tools = [tool("save", { approval: "always" })];
    await restart(tools);
    const begun = await run(save);
    await asked();
    await served.end();
    vi.setSystemTime(Date.now() + seconds * 1000);
    await served.begin({ tools: provider(...tools), approvals: new Approvals() });
    return begun;
  }

  test("after the five minutes the call is denied", async () => {
    const { id, runId } = await away(301);
    await ended(served.world, { id, runId });
    expect(ran).toEqual([]);
    expect(read().at(-1).content).toContain("nobody approved it within");
  });

  test("before, it waits", async () => {
    const { id, runId } = await away(240);
    await asked();
    await decide("approve");
    await ended(served.world, { id, runId });
    expect(ran).toEqual(["save"]);
  });
});

test("of a run that has ended in the store, no decision counts", async () => {
  await restart([tool("save", { approval: "always" })]);
  await run(save);
  await asked();
  await served.query("UPDATE branched_runs SET process = NULL");
  expect(await decide("approve")).toMatchObject({
    status: 404,
    body: { error: { message: "The run of this call has ended, or was deleted." } },
  });
  expect(ran).toEqual([]);
});

test("a run is cancelled after the restart, and one whose answer had begun ends as before", async () => {
  const tools = [tool("save", { approval: "always" })];
  await restart(tools);
  const { id, runId } = await run(save);
  await asked();
  await restart(tools);
  await asked();
  await send("POST", `/api/conversations/${id}/runs/${runId}/cancel`);
  expect((await ended(served.world, { id, runId })).message).toMatchObject({ status: "cancelled" });
  expect(ran).toEqual([]);

  served.world.chat.script = [
    ...holds([save], ...said).slice(0, -2),
    { type: "content", text: "It" },
    { hang: true },
  ];
  const { body: started } = await send("POST", `/api/conversations/${id}/runs`, { message: "?" });
  await asked();
  await decide("approve");
  await eventually(async () => {
    const { body } = await send("GET", `/api/conversations/${id}`);
    expect(body.messages.at(-1).message).toBe("Let me see.\n\nIt");
  });
  await restart(tools);
  const { message } = await ended(served.world, { id, runId: started.run_id });
  expect(message).toMatchObject({ status: "failed", message: "Let me see.\n\nIt" });
  expect(ran).toEqual(["save"]);
});

test("what ends the process each time is given up after three times", async () => {
  await restart([tool("look", { readOnly: true, hangs: true })]);
  const { id, runId } = await run(look);
  await eventually(() => expect(ran).toEqual(["look"]));
  const { answer } = served;
  served.answer = [{ hang: true }];
  for (let round = 1; round <= 3; round++) {
    await restart([tool("look", { readOnly: true })]);
    await eventually(() => expect(served.world.chat.requests).toHaveLength(1));
  }
  served.answer = answer;
  await restart([tool("look", { readOnly: true })]);
  const { message } = await ended(served.world, { id, runId });
  const error = {
    code: "request_quarantined",
    message: expect.stringContaining("ended three times when the model went on"),
  };
  expect(message).toMatchObject({ status: "failed", error });
  expect(served.world.chat.requests).toEqual([]);
});

test("a run whose hold cannot be read ends with what was said, and the others go on", async () => {
  const tools = [tool("save", { approval: "always" })];
  await restart(tools);
  const broken = await run(save);
  await asked();
  const other = await run({ ...save, id: "call_9" });
  await eventually(async () => {
    expect((await send("GET", "/api/approvals")).body.approvals).toHaveLength(2);
  });
  const alsoBroken = await run({ ...save, id: "call_10" });
  await eventually(async () => {
    expect((await send("GET", "/api/approvals")).body.approvals).toHaveLength(3);
  });
  await served.query(`UPDATE branched_holds SET round = '{' WHERE run_id = '${broken.runId}'`);
  await served.query(`UPDATE branched_events SET tokens = '[1', body = '{"message":'
    WHERE run_id = '${alsoBroken.runId}' AND number = 2`);
  await restart(tools);
  const { message } = await ended(served.world, broken);
  expect(message).toMatchObject({ status: "failed", message: "Let me see." });
  const { body } = await send("GET", `/api/conversations/${alsoBroken.id}`);
  expect(body.messages.at(-1)).toMatchObject({ status: "failed" });
  expect(await asked()).toMatchObject({ call_id: "call_9" });
  expect((await decide("approve", "call_9")).status).toBe(200);
  expect((await ended(served.world, other)).message).toMatchObject({ status: "complete" });
  expect(ran).toEqual(["save"]);
});
