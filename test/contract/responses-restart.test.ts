/** A response that waits for outputs of its client outlives the server: in the next one they are answered as if nothing had been. */

import { expect, test, vi } from "vitest";
import type { ToolCall } from "../../src/chat/types.ts";
import type { Tool, ToolResult } from "../../src/tools/types.ts";
import { eventually } from "../support/eventually.ts";
import { fakeTool, finish, provider } from "./fake-services.ts";
import { eventsOf, type Json } from "./responses-world.ts";
import { holds, restartWorld } from "./restart-world.ts";

const call: ToolCall = { id: "call_1", name: "list_files", arguments: `{"path":"."}` };
const other: ToolCall = { id: "call_2", name: "list_files", arguments: "{}" };
const request = {
  input: "What is here?",
  instructions: "Be short.",
  tools: [{ type: "function", name: "list_files", parameters: { type: "object" } }],
  background: true,
  temperature: 0.25,
  fermata: { tools: "held" },
};

const served = restartWorld([{ type: "content", text: "Done." }, finish("stop")]);
const { restart, send } = served;

const answer = (id: string, callId: string, output: string) =>
  send("POST", `/v1/responses/${id}/tool_outputs`, { tool_call_id: callId, output });

/** The id of a response that waits for these calls. */
async function waiting(body: object, ...calls: ToolCall[]): Promise<string> {
  served.world.chat.script = holds(calls, { type: "content", text: "Let me look." });
  const { status, body: created } = await send("POST", "/v1/responses", body);
  expect(status).toBe(200);
  await eventually(async () => {
    const { body: now } = await send("GET", `/v1/responses/${created.id}`);
    expect(now.output.filter((item: Json) => item.type.endsWith("_call"))).toHaveLength(
      calls.length,
    );
    expect(await nextOf(created.id)).toBeGreaterThan(0);
  });
  return created.id;
}

/** The number of its next event, once the store has the round that waits: what a client sees then outlives the server. */
async function nextOf(id: string): Promise<number | undefined> {
  const rows = await served.query<{ next: number }>(
    `SELECT next FROM response_holds WHERE response_id = '${id}'`,
  );
  return rows[0]?.next;
}

const ended = (id: string): Promise<Json> =>
  eventually(async () => {
    const { body } = await send("GET", `/v1/responses/${id}`);
    expect(["queued", "in_progress"]).not.toContain(body.status);
    return body;
  });

const messagesRead = (): Json => served.world.chat.requests.at(-1)!.messages;

test("outputs that come after a restart are read with the call, and the response ends", async () => {
  const id = await waiting(request, call, other);
  expect((await answer(id, "call_2", "nothing")).status).toBe(200);
  await restart();
  expect((await send("GET", `/v1/responses/${id}`)).body).toMatchObject({ status: "in_progress" });
  // What came before counts, and what is unknown is refused, as before.
  expect((await answer(id, "call_2", "again")).status).toBe(400);
  expect((await answer(id, "call_9", "what?")).status).toBe(404);
  expect(served.world.chat.requests).toEqual([]);

  served.world.chat.script = [{ type: "content", text: "Two files." }, finish("stop")];
  expect((await answer(id, "call_1", "a b")).status).toBe(200);
  const response = await ended(id);
  expect(response).toMatchObject({ status: "completed", error: null, temperature: 0.25 });
  expect(
    response.output.map((item: Json) => [
      item.type,
      item.status,
      item.content?.[0].text ?? item.call_id,
    ]),
  ).toEqual([
    ["message", "completed", "Let me look."],
    ["function_call", "completed", "call_1"],
    ["function_call", "completed", "call_2"],
    ["message", "completed", "Two files."],
  ]);
  expect(messagesRead()).toEqual([
    { role: "system", content: "Be short." },
    { role: "user", content: "What is here?" },
    { role: "assistant", content: "Let me look.", toolCalls: [call, other] },
    { role: "tool", toolCallId: "call_1", content: "a b" },
    { role: "tool", toolCallId: "call_2", content: "nothing" },
  ]);
  expect(served.world.chat.requests.at(-1)!.sampling).toMatchObject({ temperature: 0.25 });
});

test("the events of both processes are one stream", async () => {
  const id = await waiting(request, call);
  await restart();
  served.world.chat.script = [{ type: "content", text: "Two files." }, finish("stop")];
  await answer(id, "call_1", "a b");
  await ended(id);
  const reply = await served.world.app.inject({ url: `/v1/responses/${id}?stream=true` });
  const events = eventsOf(reply.body);
  expect(events.map(({ sequence_number: number }) => number)).toEqual(
    events.map((_, index) => index),
  );
  const dones = events.filter(({ type }) => type === "response.output_item.done");
  expect(dones.map(({ output_index: index }) => index)).toEqual([0, 1, 2]);
  expect(events.at(-1)).toMatchObject({ type: "response.completed" });
});

test("a request that brings the outputs resumes it", async () => {
  const id = await waiting(request, call);
  await restart();
  served.world.chat.script = [{ type: "content", text: "Two files." }, finish("stop")];
  const input = [{ type: "function_call_output", call_id: "call_1", output: "a b" }];
  const { body } = await send("POST", "/v1/responses", { previous_response_id: id, input });
  expect(body).toEqual({ id, status: "in_progress" });
  expect(await ended(id)).toMatchObject({ status: "completed" });
});

test("it survives more than one restart, and then waits for the next calls", async () => {
  const id = await waiting(request, call);
  await restart();
  await restart();
  served.world.chat.script = holds([other], { type: "content", text: "Let me look." });
  const next = await nextOf(id);
  await answer(id, "call_1", "a b");
  await eventually(async () => {
    expect((await send("GET", `/v1/responses/${id}`)).body.output).toHaveLength(4);
    expect(await nextOf(id)).toBeGreaterThan(next!);
  });
  await restart();
  expect((await answer(id, "call_2", "c")).status).toBe(200);
  expect(await ended(id)).toMatchObject({ status: "completed" });
  expect(messagesRead().filter(({ role }: Json) => role === "tool")).toEqual([
    { role: "tool", toolCallId: "call_1", content: "a b" },
    { role: "tool", toolCallId: "call_2", content: "c" },
  ]);
});

test("the time for outputs goes on while the server is down", async () => {
  const id = await waiting(request, call);
  const begun = Date.now();
  await served.end();
  const between = await served.openStore();
  const [hold] = await between.responses.takeHolds();
  expect(hold!.deadline).toBeLessThanOrEqual(Date.now() + 300_000);
  expect(hold!.deadline).toBeGreaterThan(begun + 200_000);
  await between.responses.setHold({ ...hold!, deadline: begun - 1 });
  await between.close();
  await served.begin();
  const response = await ended(id);
  expect(response.status).toBe("failed");
  expect(response.error.message).toContain("did not come within");
});

test("a clock that was set back does not change the time for outputs", async () => {
  const id = await waiting(request, call);
  await served.end();
  const between = await served.openStore();
  const [hold] = await between.responses.takeHolds();
  // More milliseconds than a timer can have.
  await between.responses.setHold({ ...hold!, deadline: Date.now() + 365 * 24 * 3600_000 });
  await between.close();
  await served.begin();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect((await send("GET", `/v1/responses/${id}`)).body).toMatchObject({ status: "in_progress" });
  expect((await answer(id, "call_1", "a b")).status).toBe(200);
  expect(await ended(id)).toMatchObject({ status: "completed" });
});

test("a call that may have run is not run again: the model is told, and what had ended counts", async () => {
  const own = [
    { id: "own_1", name: "fast", arguments: "{}" },
    { id: "own_2", name: "slow", arguments: "{}" },
  ];
  const runs = { fast: 0, slow: 0 };
  const tool = (name: "fast" | "slow", result: Promise<ToolResult>): Tool => ({
    ...fakeTool(name, { content: "", isError: false }),
    call: async () => {
      runs[name] += 1;
      return await result;
    },
  });
  const tools = provider(
    tool("fast", Promise.resolve({ content: "done", isError: false })),
    tool("slow", new Promise(() => {})),
  );
  await restart({ tools });
  const mixed = [
    ...request.tools,
    { type: "mcp", server_label: "files", require_approval: "never" },
  ];
  const id = await waiting({ ...request, tools: mixed, tool_choice: "required" }, call, ...own);
  const mcpCalls = async (): Promise<Json[]> =>
    (await send("GET", `/v1/responses/${id}`)).body.output.filter(
      ({ type }: Json) => type === "mcp_call",
    );
  await eventually(async () => expect((await mcpCalls())[0].output).toBe("done"));
  await restart({ tools });
  expect(await mcpCalls()).toMatchObject([
    { name: "fast", status: "completed", output: "done" },
    { name: "slow", status: "failed", error: expect.stringContaining("not run again") },
  ]);
  await answer(id, "call_1", "a b");
  expect(await ended(id)).toMatchObject({ status: "completed" });
  expect(runs).toEqual({ fast: 1, slow: 1 });
  expect(
    messagesRead()
      .filter(({ role }: Json) => role === "tool")
      .map(({ content }: Json) => content)
      .toSorted(),
  ).toEqual([expect.stringContaining("may have taken effect"), "a b", "done"]);
  // A call was made already.
  expect(served.world.chat.requests.at(-1)!.guidance).toMatchObject({ toolChoice: "auto" });
});

test("cancelled after the restart, it is cancelled", async () => {
  const id = await waiting(request, call);
  await restart();
  expect((await send("POST", `/v1/responses/${id}/cancel`)).body.status).toBe("cancelled");
  await restart();
  expect((await answer(id, "call_1", "a b")).status).toBe(404);
});

test("a response that generated is failed by a restart, as before", async () => {
  served.world.chat.script = [{ type: "content", text: "So" }, { hang: true }];
  const { body } = await send("POST", "/v1/responses", request);
  await restart();
  expect((await send("GET", `/v1/responses/${body.id}`)).body.status).toBe("failed");
});

test("where one cannot be read after the restart, the others go on", async () => {
  const [unread, id] = [await waiting(request, call), await waiting(request, call)];
  const { openStore } = served;
  served.openStore = async () => {
    const store = await openStore();
    vi.spyOn(store.responses, "items").mockRejectedValueOnce(new Error("disk I/O error"));
    return store;
  };
  await restart();
  served.openStore = openStore;
  served.world.chat.script = [{ type: "content", text: "Two files." }, finish("stop")];
  expect((await answer(id, "call_1", "a b")).status).toBe(200);
  expect(await ended(id)).toMatchObject({ status: "completed" });
  // Nothing of it is lost: the next server reads it.
  await restart();
  expect((await answer(unread, "call_1", "a b")).status).toBe(200);
  expect(await ended(unread)).toMatchObject({ status: "completed" });
});

test("a response that cannot be read any more fails, and the others go on", async () => {
  const round = await waiting(request, call);
  const item = await waiting(request, call);
  const body = await waiting(request, call);
  const other = await waiting(request, call);
  await served.query(`UPDATE response_holds SET round = '{' WHERE response_id = '${round}'`);
  await served.query(`UPDATE items SET body = '{' WHERE key IN
    (SELECT item FROM response_items WHERE response_id = '${item}' AND part = 2)`);
  await served.query(`UPDATE responses SET body = '{' WHERE id = '${body}'`);
  await restart();
  expect((await send("GET", `/v1/responses/${round}`)).body).toMatchObject({ status: "failed" });
  for (const damaged of [item, body])
    expect((await send("GET", `/v1/responses/${damaged}`)).status).toBe(500);
  expect((await send("DELETE", `/v1/responses/${item}`)).status).toBe(200);
  const left = `SELECT run FROM responses WHERE run IS NOT NULL`;
  expect(await served.query(left)).toHaveLength(1);
  expect(await served.query("SELECT response_id FROM response_holds")).toEqual([
    { response_id: other },
  ]);
  served.world.chat.script = [{ type: "content", text: "Two files." }, finish("stop")];
  expect((await answer(other, "call_1", "a b")).status).toBe(200);
  expect(await ended(other)).toMatchObject({ status: "completed" });
});
