/** A client that loses part of its history hears of it, whatever its wire. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ToolCall } from "../../src/chat/types.ts";
import { callEvents, finish } from "./fake-services.ts";
import { createResponsesWorld, type Json, type ResponsesWorld } from "./responses-world.ts";

const header = "x-fermata-history-gap";
let world: ResponsesWorld;

beforeEach(async () => {
  world = await createResponsesWorld();
});

afterEach(() => world.close());

/** How one wire says the same things. */
interface Wire {
  url: string;
  /** Beside the conversation. */
  rest: object;
  key: "messages" | "input";
  user: object;
  call(id: string): object;
  result(id: string): object;
}

const parameters = { type: "object", properties: {} };
const wires: [string, Wire][] = [
  [
    "chat completions",
    {
      url: "/v1/chat/completions",
      rest: { tools: [{ type: "function", function: { name: "read_chunk", parameters } }] },
      key: "messages",
      user: { role: "user", content: "Summarize it." },
      call: (id) => ({
        role: "assistant",
        content: null,
        tool_calls: [{ id, type: "function", function: { name: "read_chunk", arguments: "{}" } }],
      }),
      result: (id) => ({ role: "tool", tool_call_id: id, content: "a chunk" }),
    },
  ],
  [
    "Messages",
    {
      url: "/v1/messages",
      rest: { max_tokens: 100, tools: [{ name: "read_chunk", input_schema: parameters }] },
      key: "messages",
      user: { role: "user", content: "Summarize it." },
      call: (id) => ({
        role: "assistant",
        content: [{ type: "tool_use", id, name: "read_chunk", input: {} }],
      }),
      result: (id) => ({
        role: "user",
        content: [{ type: "tool_result", tool_use_id: id, content: "a chunk" }],
      }),
    },
  ],
  [
    "Responses",
    {
      url: "/v1/responses",
      rest: { tools: [{ type: "function", name: "read_chunk", parameters }] },
      key: "input",
      user: { role: "user", content: "Summarize it." },
      call: (id) => ({ type: "function_call", call_id: id, name: "read_chunk", arguments: "{}" }),
      result: (id) => ({ type: "function_call_output", call_id: id, output: "a chunk" }),
    },
  ],
];

describe.each(wires)("%s", (_name, wire) => {
  const { user, call, result } = wire;

  /** @param next the call that the model answers with */
  async function send(history: object[], next: string, rest: object = {}) {
    const made: ToolCall = { id: next, name: "read_chunk", arguments: "{}" };
    world.chat.script = [...callEvents(made), finish("tool_calls", [made])];
    const payload = { ...wire.rest, [wire.key]: history, ...rest };
    const reply = await world.app.inject({ method: "POST", url: wire.url, payload });
    expect(reply.statusCode).toBe(200);
    return reply.headers[header];
  }

  const warnings = (): Json[] => world.lines.filter(({ level }) => level === 40);

  test("the broken flow of the guide: each request has the newest round only", async () => {
    expect(await send([user], "call_1")).toBeUndefined();
    expect(await send([user, call("call_1"), result("call_1")], "call_2")).toBeUndefined();
    expect(warnings()).toEqual([]);
    expect(await send([user, call("call_2"), result("call_2")], "call_3")).toBe("call_1");
    expect(warnings()).toMatchObject([{ missing_calls: ["call_1"] }]);
  });

  test("a history that grows is whole, streamed too", async () => {
    const history = [user];
    for (const id of ["call_1", "call_2", "call_3"]) {
      expect(await send(history, id, { stream: true })).toBeUndefined();
      history.push(call(id), result(id));
    }
    expect(warnings()).toEqual([]);
  });

  test.each([false, true])("a call without its result, stream: %s", async (stream) => {
    const history = [user, call("call_1"), result("call_1"), call("call_2"), user];
    expect(await send(history, "call_3", { stream })).toBe("call_2");
    expect(warnings()).toMatchObject([{ missing_results: ["call_2"] }]);
    expect(JSON.stringify(warnings())).not.toContain("a chunk");
  });

  test("calls of another server's are no part of a history here", async () => {
    await send(
      [user, call("call_0"), result("call_0"), call("call_1"), result("call_1")],
      "call_2",
    );
    expect(await send([user, call("call_1"), result("call_1")], "call_3")).toBeUndefined();
  });

  test("a result whose call is not there is refused, with how it should be sent", async () => {
    const payload = { ...wire.rest, [wire.key]: [user, result("call_9")] };
    const reply = await world.app.inject({ method: "POST", url: wire.url, payload });
    expect(reply.statusCode).toBe(400);
    const { message } = (reply.json() as { error: { message: string } }).error;
    const example = JSON.parse(/as in (\[.*\])/.exec(message)![1]!) as Json[];
    const corrected = { ...wire.rest, [wire.key]: [user, ...example] };
    const again = await world.app.inject({ method: "POST", url: wire.url, payload: corrected });
    expect([again.statusCode, again.headers[header]]).toEqual([200, undefined]);
  });
});

test("a chat result without its role shows the corrected message", async () => {
  const [, wire] = wires[0]!;
  const untyped = { tool_call_id: "call_1", content: "a chunk" };
  const payload = { messages: [wire.user, wire.call("call_1"), untyped] };
  const reply = await world.app.inject({ method: "POST", url: wire.url, payload });
  expect(reply.json().error).toMatchObject({ param: "messages[2].role" });
  expect(reply.json().error.message).toContain('{"role":"tool","tool_call_id":"call_1"');
});

test("a prompt that is read in advance may be the beginning of its conversation alone", async () => {
  const [, { url, rest, user }] = wires[2]!;
  const made: ToolCall = { id: "call_1", name: "read_chunk", arguments: "{}" };
  const send = async (more: object = {}) => {
    const payload = { ...rest, input: [user], prompt_cache_key: "session", ...more };
    const reply = await world.app.inject({ method: "POST", url, payload });
    expect(reply.statusCode).toBe(200);
    return reply.headers[header];
  };
  world.chat.script = [...callEvents(made), finish("tool_calls", [made])];
  await send();
  world.chat.script = [finish("length")];
  expect(await send({ max_output_tokens: 0 })).toBeUndefined();
  expect(await send({ max_output_tokens: 1 })).toBe("call_1");
});
