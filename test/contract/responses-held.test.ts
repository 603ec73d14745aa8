/** The life of a tool call, in lines and in events: one run of each variant, field by field. */

import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { callEvents, finish, type ScriptStep } from "./fake-services.ts";
import {
  createResponsesWorld,
  toolCallLines,
  type Event,
  type ResponsesWorld,
} from "./responses-world.ts";
import { call, held, idsOf, noSecrets, other, tools } from "./held-calls.ts";

let world: ResponsesWorld;

beforeEach(async () => {
  world = await createResponsesWorld();
});

afterEach(() => world.close());

describe("held", () => {
  test("each output closes its call, and the same stream goes on", async () => {
    world.chat.script = held;
    const stream = await world.opened({
      input: "Hi",
      tools,
      fermata: { tools: "held", events: "extended" },
    });
    await stream.until((events) => completedCount(events) === 2);
    const { response } = idsOf(stream.events);
    expect(await post(response, "call_2", "two")).toEqual({
      status: 200,
      body: { id: response, status: "in_progress" },
    });
    await stream.until((events) => events.at(-1)?.type === "response.output_item.done");
    expect(stream.events.at(-1)).toMatchObject({
      output_index: 1,
      item: { call_id: "call_2", status: "completed" },
    });
    const unfinished = await world.call("GET", `/v1/responses/${response}`);
    expect(unfinished.body).toMatchObject({
      status: "in_progress",
      output: [{ status: "in_progress" }, { status: "completed" }],
    });
    await post(response, "call_1", "one");
    const events = await stream.end();
    expect(events.at(-1)).toMatchObject({ type: "response.completed" });
    expect(world.chat.outputs).toEqual([
      [
        { callId: "call_1", name: "list_files", content: "one" },
        { callId: "call_2", name: "list_files", content: "two" },
      ],
    ]);
    const lines = toolCallLines(world.lines) as { msg: string; call_id: string }[];
    expect(lines.slice(-4).map(({ msg, call_id }) => [msg, call_id])).toEqual([
      ["TOOL_CALL delta", "call_2"],
      ["TOOL_CALL completed", "call_2"],
      ["TOOL_CALL done", "call_2"],
      ["TOOL_CALL done", "call_1"],
    ]);
    noSecrets(world.lines);
    // Clients make names up without end.
    const metrics = (await world.app.inject({ url: "/metrics" })).body;
    expect(metrics).toContain(
      'fermata_tool_calls_total{server="client",tool="any",outcome="ok"} 2',
    );
    expect(metrics).not.toContain("list_files");

    // The next turn has the calls and their outputs as the model read them.
    world.chat.script = [{ type: "content", text: "Yes." }, finish("stop")];
    await world.create({ input: "Sure?", previous_response_id: response, tools });
    expect(world.chat.requests.at(-1)!.messages).toEqual([
      { role: "user", content: "Hi" },
      { role: "assistant", content: "", toolCalls: [call, other] },
      { role: "tool", toolCallId: "call_1", content: "one" },
      { role: "tool", toolCallId: "call_2", content: "two" },
      { role: "assistant", content: "Done." },
      { role: "user", content: "Sure?" },
    ]);
  });

  test("an output that is still being stored when the response ends does not undo its end", async () => {
    world.chat.script = held;
    const fermata = { tools: "held", events: "extended" };
    const stream = await world.opened({ input: "Hi", tools, fermata });
    await stream.until((events) => completedCount(events) === 2);
    const { response } = idsOf(stream.events);
    await post(response, "call_2", "two");
    const { store } = world;
    const write = store.responses.update.bind(store.responses);
    let hasEnded = false;
    vi.spyOn(store.responses, "update").mockImplementation(async (...update) => {
      const isLast = update[2]["status"] === "completed";
      // As long as a connection may take.
      for (let turn = 0; !isLast && !hasEnded && turn < 200; turn++) await setImmediate();
      await write(...update);
      hasEnded ||= isLast;
    });
    await post(response, "call_1", "one");
    await stream.end();
    vi.restoreAllMocks();
    const stored = await store.responses.find("anonymous", response);
    expect(stored!.body).toMatchObject({ status: "completed" });
    const items = await store.responses.items("anonymous", response);
    expect(items!.output.at(-1)).toMatchObject({ type: "message", status: "completed" });
  });

  test("what cannot be posted is refused, and says why", async () => {
    world.chat.script = held;
    const stream = await world.opened({ input: "Hi", tools, fermata: { tools: "held" } });
    await stream.until((events) => doneCount(events) === 2);
    const { response } = idsOf(stream.events);
    const url = `/v1/responses/${response}/tool_outputs`;
    const output = [{ type: "output_text", text: "x" }];
    const cases: [object, number, string][] = [
      [{ tool_call_id: "call_9", output }, 404, "tool_call_id"],
      [{ tool_call_id: "call_1", output: [] }, 400, "output"],
      [{ output }, 400, "tool_call_id"],
      [{ tool_call_id: "call_1", output: "x".repeat(2 ** 20 + 1) }, 400, "output"],
      // Bytes count, not characters.
      [{ tool_call_id: "call_1", output: "\u00fc".repeat(2 ** 19 + 1) }, 400, "output"],
    ];
    for (const [body, status, param] of cases) {
      const reply = await world.call("POST", url, body);
      expect(reply).toMatchObject({ status, body: { error: { param } } });
    }
    await world.call("POST", url, { tool_call_id: "call_1", output });
    const again = await world.call("POST", url, { tool_call_id: "call_1", output });
    expect(again).toMatchObject({ status: 400 });
    expect(again.body.error.message).toContain("already completed");
    const unknown = await world.call("POST", "/v1/responses/resp_x/tool_outputs", {
      tool_call_id: "call_1",
      output,
    });
    expect(unknown.status).toBe(404);
    await world.call("POST", url, { tool_call_id: "call_2", output });
    expect((await stream.end()).at(-1)).toMatchObject({ type: "response.completed" });
  });

  test("a response that is not held says how to create one that is", async () => {
    world.chat.script = [{ hang: true }];
    const { body } = await world.create({ input: "Hi", tools, background: true });
    const { status, body: refused } = await post(body.id, "call_1", "x");
    expect(status).toBe(400);
    expect(refused.error.param).toBe("id");
    const remedy = /Create it with (.*)\.$/.exec(refused.error.message)![1]!;
    const held = await world.create({
      input: "Hi",
      tools,
      background: true,
      ...JSON.parse(`{${remedy}}`),
    });
    expect(held.status).toBe(200);
    expect(await post(held.body.id, "call_1", "x")).toMatchObject({
      status: 404,
      body: { error: { param: "tool_call_id" } },
    });
  });

  test("a request with the outputs resumes the stream as well", async () => {
    world.chat.script = held;
    const stream = await world.opened({ input: "Hi", tools, fermata: { tools: "held" } });
    await stream.until((events) => doneCount(events) === 2);
    const { response } = idsOf(stream.events);
    const input = ["call_1", "call_2"].map((id) => ({
      type: "function_call_output",
      call_id: id,
      output: id,
    }));
    const reply = await world.create({ input, previous_response_id: response, tools });
    expect(reply.body).toEqual({ id: response, status: "in_progress" });
    expect((await stream.end()).at(-1)).toMatchObject({ type: "response.completed" });
    expect(world.chat.requests).toHaveLength(1);
  });

  test("two outputs of one call are not those of both: the request is a turn of its own", async () => {
    world.chat.script = held;
    const stream = await world.opened({ input: "Hi", tools, fermata: { tools: "held" } });
    await stream.until((events) => doneCount(events) === 2);
    const { response } = idsOf(stream.events);
    world.chat.script = [{ type: "content", text: "One file." }, finish("stop")];
    const input = ["a", "b"].map((output) => ({
      type: "function_call_output",
      call_id: "call_1",
      output,
    }));
    const reply = await world.create({ input, previous_response_id: response, tools });
    expect(reply.body).toMatchObject({ status: "completed", previous_response_id: response });
    expect(reply.body.id).not.toBe(response);
    expect((await stream.end()).at(-1)).not.toMatchObject({ type: "response.completed" });
  });

  test.each<[string, (previous: string) => object]>([
    ["previous_response_id", (previous_response_id) => ({ previous_response_id })],
    [
      "the history",
      () => ({
        input: [
          { role: "user", content: "Hi" },
          ...[call, other].map(({ id, name, arguments: text }) => ({
            type: "function_call",
            call_id: id,
            name,
            arguments: text,
          })),
          ...outputs,
        ],
      }),
    ],
  ])("a streamed request with the outputs, by %s, streams", async (_title, history) => {
    world.chat.script = held;
    const first = await world.opened({ input: "Hi", tools, fermata: { tools: "held" } });
    await first.until((events) => doneCount(events) === 2);
    const { response: previous } = idsOf(first.events);
    world.chat.script = [{ type: "content", text: "Two files." }, finish("stop")];
    const events = await world.streamed({ input: outputs, tools, ...history(previous) });
    expect(events.at(-1)).toMatchObject({
      type: "response.completed",
      response: { output: [{ type: "message", content: [{ text: "Two files." }] }] },
    });
    expect((await first.end()).at(-1)).toMatchObject({ response: { status: "cancelled" } });
    expect(world.chat.requests.at(-1)!.messages).toEqual([
      { role: "user", content: "Hi" },
      { role: "assistant", content: "", toolCalls: [call, other] },
      { role: "tool", toolCallId: "call_1", content: "call_1" },
      { role: "tool", toolCallId: "call_2", content: "call_2" },
    ]);
  });

  describe("by the flag", () => {
    beforeEach(async () => {
      await world.close();
      world = await createResponsesWorld({ config: { responsesTools: "held" } });
    });

    test("a stream waits; what is not streamed ends with its calls", async () => {
      world.chat.script = [...callEvents(call), finish("tool_calls", [call])];
      const plain = await world.create({ input: "Hi", tools });
      expect(plain).toMatchObject({
        status: 200,
        body: { status: "completed", output: [{ call_id: "call_1", status: "completed" }] },
      });
      const background = await world.create({ input: "Hi", tools, background: true });
      await expect
        .poll(async () => (await world.call("GET", `/v1/responses/${background.body.id}`)).body)
        .toMatchObject({ status: "completed", output: [{ status: "completed" }] });
      const text = await world.create({ input: "Hi" });
      expect(text.status).toBe(200);

      world.chat.script = held;
      const stream = await world.opened({ input: "Hi", tools });
      await stream.until((events) => doneCount(events) === 2);
      const { response } = idsOf(stream.events);
      await post(response, "call_1", "one");
      await post(response, "call_2", "two");
      expect((await stream.end()).at(-1)).toMatchObject({ type: "response.completed" });
    });

    test("a client that knows of no wait gets a whole answer to its outputs", async () => {
      world.chat.script = held;
      const stream = await world.opened({ input: "Hi", tools });
      await stream.until((events) => doneCount(events) === 2);
      const { response: previous_response_id } = idsOf(stream.events);
      world.chat.script = [{ type: "content", text: "Two files." }, finish("stop")];
      const { body } = await world.create({ input: outputs, previous_response_id, tools });
      expect(body).toMatchObject({ object: "response", status: "completed" });
      expect((await stream.end()).at(-1)).toMatchObject({ response: { status: "cancelled" } });
    });
  });

  test("a new turn without them closes it, in the store, the log and the new stream", async () => {
    world.chat.script = held;
    const stream = await world.opened({ input: "Hi", tools, fermata: { tools: "held" } });
    await stream.until((events) => doneCount(events) === 2);
    const { response: previous } = idsOf(stream.events);
    world.chat.script = [{ type: "content", text: "Never mind." }, finish("stop")];
    const events = await world.streamed({
      input: "Never mind",
      previous_response_id: previous,
      tools,
      fermata: { events: "extended" },
    });
    expect((await stream.end()).at(-1)).toMatchObject({
      type: "response.incomplete",
      response: { status: "cancelled", output: [{ status: "in_progress" }, {}] },
    });
    const { response } = idsOf(events);
    expect(events.map(({ type }) => type).slice(0, 7)).toEqual([
      "response.created",
      "response.in_progress",
      "response.tool_call.completed",
      "response.output_item.done",
      "response.tool_call.completed",
      "response.output_item.done",
      "response.output_item.added",
    ]);
    expect(events[2]).toMatchObject({ response: { id: previous }, call_id: "call_1" });
    const lines = toolCallLines(world.lines);
    expect(lines.slice(-4)).toEqual(
      ["call_1", "call_2"].flatMap((call_id) => [
        { msg: "TOOL_CALL finalize prev", response, prev_response: previous, call_id },
        { msg: "TOOL_CALL done prev", response, prev_response: previous, call_id },
      ]),
    );
    const stored = await world.call("GET", `/v1/responses/${previous}`);
    expect(stored.body.output).toMatchObject([{ status: "completed" }, { status: "completed" }]);
    // By default the wire keeps to OpenAI's events.
    const standard = await world.streamed({ input: "Hm", previous_response_id: response, tools });
    expect(standard.map(({ type }) => type).join()).not.toContain("tool_call.");
  });

  test.each<[string, ScriptStep[], number]>([
    ["while a second call is written", callEvents(other, 1).slice(0, 2), 1],
    ["just after the first call", [], 0],
  ])(
    "the tokens run out %s: incomplete, and the next turn brings the output",
    async (_when, cut, cutCount) => {
      world.chat.script = [...callEvents(call), ...cut, finish("length")];
      const body = { tools, fermata: { tools: "held", events: "extended" } };
      const events = await world.streamed({ input: "Hi", ...body });
      const { response: previous } = idsOf(events);
      const unfinished = Array.from({ length: cutCount }, () => ({
        call_id: "call_2",
        status: "incomplete",
      }));
      expect(events.at(-1)).toMatchObject({
        type: "response.incomplete",
        response: {
          status: "incomplete",
          incomplete_details: { reason: "max_output_tokens" },
          error: null,
          output: [{ call_id: "call_1", status: "in_progress" }, ...unfinished],
        },
      });
      expect(await post(previous, "call_1", "late")).toMatchObject({ status: 404 });

      world.chat.script = [{ type: "content", text: "Done." }, finish("stop")];
      const output = { type: "function_call_output", call_id: "call_1", output: "one" };
      const next = await world.streamed({
        input: [output],
        previous_response_id: previous,
        ...body,
      });
      expect(next.at(-1)).toMatchObject({ type: "response.completed" });
      expect(next[2]).toMatchObject({ type: "response.tool_call.completed", call_id: "call_1" });
      expect(world.chat.requests.at(-1)!.messages).toMatchObject([
        { role: "user" },
        { role: "assistant", toolCalls: [call, ...unfinished.map(() => ({ id: "call_2" }))] },
        { role: "tool", toolCallId: "call_1", content: "one" },
      ]);
      const stored = await world.call("GET", `/v1/responses/${previous}`);
      expect(stored.body.output[0]).toMatchObject({ call_id: "call_1", status: "completed" });
    },
  );

  test("waiting has an end", async () => {
    await world.close();
    world = await createResponsesWorld({ config: { responsesToolTimeoutMs: 300 } });
    world.chat.script = held;
    const stream = await world.opened({ input: "Hi", tools, fermata: { tools: "held" } });
    const events = await stream.end();
    expect(events.at(-1)).toMatchObject({
      type: "response.failed",
      response: { error: { message: expect.stringContaining("did not come within 0.3 seconds") } },
    });
    const { response } = idsOf(events);
    expect(await post(response, "call_1", "late")).toMatchObject({ status: 404 });
  });

  test("without a stream nobody would see the calls", async () => {
    const reply = await world.create({ input: "Hi", tools, fermata: { tools: "held" } });
    expect(reply.body.error).toMatchObject({ param: "fermata.tools" });
  });
});

const outputs = ["call_1", "call_2"].map((id) => ({
  type: "function_call_output",
  call_id: id,
  output: id,
}));

function post(response: string, callId: string, text: string) {
  const output = [{ type: "output_text", text }];
  return world.call("POST", `/v1/responses/${response}/tool_outputs`, {
    tool_call_id: callId,
    output,
  });
}

function doneCount(events: readonly Event[]): number {
  return events.filter(({ type }) => type === "response.function_call_arguments.done").length;
}

function completedCount(events: readonly Event[]): number {
  return events.filter(({ type }) => type === "response.tool_call.completed").length;
}
