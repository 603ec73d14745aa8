/** A delegation outlives the server like the run that made it: its sub-agent goes on from its held round, and no call runs twice. */

import { setTimeout } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import type { ChatMessage, ToolCall } from "../../src/chat/types.ts";
import { Approvals } from "../../src/tools/approvals.ts";
import type { Tool } from "../../src/tools/types.ts";
import { agentDirectory } from "../support/agents.ts";
import { eventually } from "../support/eventually.ts";
import { FakeChat, finish, provider, type ScriptStep } from "./fake-services.ts";
import type { Json } from "./responses-world.ts";
import { countedTool, holds, restartWorld } from "./restart-world.ts";
import { ended, type Run } from "./ended-run.ts";

const call = (id: string, name: string, args: object = {}): ToolCall => ({
  id,
  name,
  arguments: JSON.stringify(args),
});
const delegate = (id: string, agent: string, task: string): ToolCall =>
  call(id, "delegate", { agent, task });

const toReader = delegate("call_1", "reader", "Save milk");
// Models of two agents may give the same ids.
const save = call("call_1", "save", { text: "milk" });
const look = call("call_2", "look");
const note = call("call_3", "note");

const directory = {
  supervisor: "boss",
  agents: {
    boss: { description: "Plans", instructions: "You plan.", agents: ["reader", "clerk"] },
    clerk: { description: "Files", instructions: "You file.", agents: ["reader"] },
    reader: { description: "Reads", instructions: "You read.", tools: { files: "*" } },
  },
};

const served = restartWorld([finish("stop")]);
const { asked, send } = served;
let ran: string[];
/** What the models of a process say, by the agent and how many of its calls have results. */
type Says = Record<string, ScriptStep[]>;

beforeEach(() => {
  ran = [];
});

const speaker = ([first]: readonly ChatMessage[]): string =>
  /You (plan|read|file)/.exec(first!.content)![1]!;

function turnOf(messages: readonly ChatMessage[]): string {
  return `${speaker(messages)} ${messages.filter(({ role }) => role === "tool").length}`;
}

const tool = (name: string, options?: Parameters<typeof countedTool>[2]): Tool =>
  countedTool(ran, name, options);

async function restart(says: Says, tools: Tool[], approvals = new Approvals()): Promise<void> {
  const chat = new FakeChat();
  chat.scriptFor = () => says[turnOf(chat.requests.at(-1)!.messages)] ?? [{ hang: true }];
  const agents = agentDirectory(directory, chat, { tools: () => tools, contextSize: 1000 });
  await served.restart({ chat, agents, tools: provider(...tools), approvals });
}

/** As on a slow disk. */
function writeEventsLate(ms: number): void {
  const { branches } = served.store;
  const append = branches.appendEvents.bind(branches);
  branches.appendEvents = async (...event) => {
    await setTimeout(ms);
    await append(...event);
  };
}

const answers: Says = {
  "read 1": [
    { type: "reasoning", text: "It is there. " },
    { type: "content", text: "Saved." },
    finish("stop"),
  ],
  "read 3": [{ type: "content", text: "Saved." }, finish("stop")],
  "file 1": [{ type: "content", text: "Filed." }, finish("stop")],
  "plan 1": [{ type: "content", text: "All is done." }, finish("stop")],
};

async function run(): Promise<Run> {
  const { body: conversation } = await send("POST", "/api/conversations", {});
  const { body } = await send("POST", `/api/conversations/${conversation.id}/runs`, {
    message: "Save milk.",
    model: "boss",
    seed: 7,
  });
  return { id: conversation.id, runId: body.run_id };
}

const requestOf = (turn: string) =>
  served.world.chat.requests.find(({ messages }) => turnOf(messages) === turn)!;

test("a delegated call that waits for a person is approved after the restart", async () => {
  const tools = [tool("save", { approval: "always" })];
  const first: Says = {
    "plan 0": holds([toReader], { type: "reasoning", text: "Who can? " }),
    "read 0": holds(
      [save],
      { type: "reasoning", text: "I must. " },
      { type: "content", text: "Let me see." },
    ),
  };
  await restart(first, tools);
  const { id, runId } = await run();
  const before = await asked();
  await restart({}, tools);
  await restart(answers, tools);
  expect(await asked()).toEqual(before);
  expect(served.world.chat.requests).toEqual([]);

  await send("POST", `/api/approvals/${before.call_id}`, { decision: "approve" });
  const { message, events, state } = await ended(served.world, { id, runId });
  expect(ran).toEqual(["save"]);
  expect(message).toMatchObject({ status: "complete", message: "All is done." });
  expect(requestOf("read 1")).toMatchObject({
    messages: [
      { role: "system", content: "You read." },
      { role: "user", content: "Save milk" },
      { role: "assistant", content: "Let me see.", reasoning: "I must. ", toolCalls: [save] },
      { role: "tool", toolCallId: "call_1", content: "save: done" },
    ],
    sampling: { seed: 7 },
  });
  expect(requestOf("plan 1").messages.at(-1)).toMatchObject({
    toolCallId: "call_1",
    content: "Let me see.\n\nSaved.",
  });
  expect(state.toolCalls).toMatchObject([
    {
      call_id: "call_1",
      tool_response: "Let me see.\n\nSaved.",
      reasoning: "I must. It is there. ",
    },
    {
      call_id: "call_1_2",
      tool_response: "save: done",
      tool_call_details: { parent_call_id: "call_1" },
    },
  ]);
  const approvals = events.flatMap(({ details = [] }) =>
    details.flatMap((detail) => (detail.type === "approval" ? [detail.state] : [])),
  );
  expect(approvals).toEqual(["asked", "approved"]);
});

test("in a delegation too, what ran is not run again, what reads is, and what had ended counts", async () => {
  const tools = (hangs: boolean) => [
    tool("save", { hangs }),
    tool("look", { readOnly: true, hangs }),
    tool("note"),
  ];
  await restart({ "plan 0": holds([toReader]), "read 0": holds([save, look, note]) }, tools(true));
  const { id, runId } = await run();
  await eventually(async () => {
    const { body } = await send("GET", `/api/conversations/${id}`);
    const said = body.messages.at(-1).tool_calls.map((made: Json) => made.tool_response);
    expect(said).toContain("note: done");
  });
  await restart(answers, tools(false));
  const { message } = await ended(served.world, { id, runId });
  expect(message).toMatchObject({ status: "complete", message: "All is done." });
  expect(ran.toSorted()).toEqual(["look", "look", "note", "save"]);
  expect(requestOf("read 3").messages.slice(-3)).toMatchObject([
    { content: expect.stringContaining("was not run again") },
    { content: "look: done" },
    { content: "note: done" },
  ]);
  expect(requestOf("plan 1").messages.at(-1)).toMatchObject({ content: "Saved." });
});

test.each([0, 30])(
  "an agent two levels below goes on, and a second restart in its next round: events take %i ms",
  async (ms) => {
    const tools = [tool("save", { approval: "always" }), tool("note", { approval: "always" })];
    const toClerk = delegate("call_1", "clerk", "File milk");
    await restart(
      { "plan 0": holds([toClerk]), "file 0": holds([toReader]), "read 0": holds([save]) },
      tools,
    );
    const { id, runId } = await run();
    const first = await asked();
    // The same id as in the round before: what became of that call says nothing of this one.
    const again = call("call_1", "note", { text: "done" });
    await restart({ "read 1": holds([again]) }, tools);
    if (ms > 0) writeEventsLate(ms);
    await asked();
    await send("POST", `/api/approvals/${first.call_id}`, { decision: "approve" });
    await eventually(async () => expect(await asked()).toMatchObject({ tool_name: "note" }));
    expect(ran).toEqual(["save"]);
    await restart(
      { ...answers, "read 2": [{ type: "content", text: "Noted." }, finish("stop")] },
      tools,
    );
    const { call_id: callId } = await asked();
    await send("POST", `/api/approvals/${callId}`, { decision: "approve" });
    const { message, state } = await ended(served.world, { id, runId });
    expect(ran).toEqual(["save", "note"]);
    expect(message).toMatchObject({ status: "complete", message: "All is done." });
    expect(state.toolCalls.map(({ tool_response: text }) => text)).toEqual([
      "Filed.",
      "Noted.",
      "save: done",
      "note: done",
    ]);
  },
);

test("an answer of a sub-agent that was being written goes on, without a word told twice", async () => {
  const tools = [tool("save")];
  const begun: ScriptStep[] = [
    { type: "reasoning", text: "It is " },
    { type: "content", text: "Sav" },
    { hang: true },
  ];
  await restart(
    { "plan 0": holds([toReader]), "read 0": [...holds([save]).slice(0, -2), ...begun] },
    tools,
  );
  const { id, runId } = await run();
  await eventually(async () => {
    const told = await served.store.branches.runEvents(runId, 0);
    expect(told.some(({ body }) => body.includes(`"stream_part":"Sav"`))).toBe(true);
  });
  await restart(answers, tools);
  const { message, state } = await ended(served.world, { id, runId });
  expect(ran).toEqual(["save"]);
  expect(message).toMatchObject({ status: "complete", message: "All is done." });
  expect(state.toolCalls[0]).toMatchObject({ tool_response: "Saved.", reasoning: "It is there. " });
});

test("a sub-agent that had called nothing begins anew; one that ends the process each time is given up", async () => {
  await restart({ "plan 0": holds([toReader]) }, []);
  const { id, runId } = await run();
  const isDelegating = () =>
    eventually(() =>
      expect(served.world.chat.requests.map(({ messages }) => speaker(messages))).toContain("read"),
    );
  await isDelegating();
  for (let round = 1; round <= 3; round++) {
    await restart({}, []);
    await isDelegating();
  }
  await restart(answers, []);
  const { message } = await ended(served.world, { id, runId });
  expect(message).toMatchObject({ status: "complete", message: "All is done." });
  expect(requestOf("plan 1").messages.at(-1)).toMatchObject({
    content: expect.stringContaining("was not run again"),
  });
});
