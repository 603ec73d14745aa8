/** The events of a tool call for clients that do not ask for held calls. */

import { Ajv2020 } from "ajv/dist/2020.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { callEvents, finish, type ScriptStep } from "./fake-services.ts";
import { createResponsesWorld, toolCallLines, type ResponsesWorld } from "./responses-world.ts";
import { call, idsOf, noSecrets, tools } from "./held-calls.ts";

let world: ResponsesWorld;

beforeEach(async () => {
  world = await createResponsesWorld();
});

afterEach(() => world.close());

describe("compatibility, the default", () => {
  test("standard events: completed and done say (compat), the stream ends after the calls", async () => {
    world.chat.script = [...callEvents(call), finish("tool_calls", [call])];
    const events = await world.streamed({ input: "Hi", tools });
    const { response, items } = idsOf(events);
    const [item_id] = items;
    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(toolCallLines(world.lines)).toEqual([
      { msg: "TOOL_CALL added", response, item_id, call_id: "call_1", name: "list_files" },
      { msg: "TOOL_CALL delta", response, call_id: "call_1", name: "list_files", args_len: 9 },
      { msg: "TOOL_CALL delta", response, call_id: "call_1", name: "list_files", args_len: 18 },
      { msg: "TOOL_CALL completed (compat)", response, call_id: "call_1" },
      {
        msg: "TOOL_CALL done (compat)",
        response,
        call_id: "call_1",
        name: "list_files",
        args_len: 18,
      },
    ]);
    noSecrets(world.lines);
  });

  test("each event has a line with its type and ids, for the guide's grep", async () => {
    world.chat.script = [...callEvents(call), finish("tool_calls", [call])];
    const events = await world.streamed({ input: "Hi", tools });
    const told = world.lines.filter(({ event }) => event !== undefined);
    expect(told.map(({ event }) => event)).toEqual(events.map(({ type }) => type));
    const { response, items } = idsOf(events);
    expect(told[2]).toMatchObject({ response, item_id: items[0], output_index: 0 });
  });

  test("extended events go with the standard ones; a delta has what is new only", async () => {
    world.chat.script = [...callEvents(call), finish("tool_calls", [call])];
    const events = await world.streamed({ input: "Hi", tools, fermata: { events: "extended" } });
    const { response, items } = idsOf(events);
    expect(events.map(({ type }) => type).slice(2)).toEqual([
      "response.output_item.added",
      "response.tool_call.delta",
      "response.function_call_arguments.delta",
      "response.tool_call.delta",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.tool_call.completed",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(events.filter(({ type }) => type.startsWith("response.tool_call."))).toEqual([
      {
        type: "response.tool_call.delta",
        sequence_number: 3,
        response: { id: response },
        item_id: items[0],
        call_id: "call_1",
        name: "list_files",
        delta: call.arguments.slice(0, 9),
      },
      {
        type: "response.tool_call.delta",
        sequence_number: 5,
        response: { id: response },
        item_id: items[0],
        call_id: "call_1",
        name: "list_files",
        delta: call.arguments.slice(9),
      },
      {
        type: "response.tool_call.completed",
        sequence_number: 8,
        response: { id: response },
        call_id: "call_1",
      },
    ]);
    expect(toolCallLines(world.lines).map((line) => (line as { msg: string }).msg)).toEqual([
      "TOOL_CALL added",
      "TOOL_CALL delta",
      "TOOL_CALL delta",
      "TOOL_CALL completed (compat)",
      "TOOL_CALL done (compat)",
    ]);
    noSecrets(world.lines);
  });
});

test("long arguments cost their length, and the events are as /openapi.json has them", async () => {
  const text = JSON.stringify({ path: "a".repeat(4000) });
  const pieces: ScriptStep[] = Array.from(text, (delta) => ({
    type: "call-arguments",
    index: 0,
    delta,
  }));
  const long = { ...call, arguments: text };
  const [start, , , end] = callEvents(long);
  world.chat.script = [start!, ...pieces, end!, finish("tool_calls", [long])];
  const events = await world.streamed({ input: "Hi", tools, fermata: { events: "extended" } });
  const extended = events.filter(({ type }) => type.startsWith("response.tool_call."));
  expect(extended.map(({ delta }) => delta ?? "").join("")).toBe(text);
  expect(JSON.stringify(extended).length).toBeLessThan(400 * text.length);

  const { paths } = (await world.app.inject({ url: "/openapi.json" })).json();
  const { content } = paths["/v1/responses"].post.responses["200"];
  const schemas = content["text/event-stream"]["x-events"] as Record<string, object>;
  const ajv = new Ajv2020();
  for (const event of extended)
    expect([event, ajv.validate(schemas[event.type]!, event)]).toEqual([event, true]);
  expect(new Set(extended.map(({ type }) => type))).toEqual(new Set(Object.keys(schemas)));
});
