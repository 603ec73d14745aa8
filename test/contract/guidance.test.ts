/** What the wires make of schemas that are refused late, and of functions' names. */

import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { FermataError } from "../../src/errors.ts";
import { openStreamAfterMs } from "../../src/server/http/stream-answer.ts";
import { callEvents, createWorld, finish } from "./fake-services.ts";

const user = { role: "user", content: "Hi" };
const wires: [url: string, body: object][] = [
  ["/v1/chat/completions", { messages: [user] }],
  ["/v1/messages", { messages: [user], max_tokens: 10 }],
  ["/v1/responses", { input: "Hi" }],
];

describe.each(wires)("%s", (url, body) => {
  test("a schema that is refused after the stream would have opened is a 400", async () => {
    const { app, chat } = createWorld({});
    const refuse = async (): Promise<void> => {
      await sleep(openStreamAfterMs + 100);
      throw new FermataError("unsupported_schema", "The tool is too much.", { param: "tools" });
    };
    chat.script = [{ prepare: refuse }];
    const payload = { ...body, stream: true };
    const response = await app.inject({ method: "POST", url, payload });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ error: { message: "The tool is too much." } });
  });
});

const name = "files.read-v1.x";
const parameters = { type: "object", properties: {} };
const chosen: [url: string, body: object][] = [
  [
    "/v1/chat/completions",
    {
      tools: [{ type: "function", function: { name, parameters } }],
      tool_choice: { type: "function", function: { name } },
      messages: [
        user,
        {
          role: "assistant",
          tool_calls: [{ id: "call_0", type: "function", function: { name, arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "call_0", content: "a" },
      ],
    },
  ],
  [
    "/v1/messages",
    {
      max_tokens: 10,
      tools: [{ name, input_schema: parameters }],
      tool_choice: { type: "tool", name },
      messages: [
        user,
        { role: "assistant", content: [{ type: "tool_use", id: "call_0", name, input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "call_0", content: "a" }] },
      ],
    },
  ],
  [
    "/v1/responses",
    {
      tools: [{ type: "function", name, parameters }],
      tool_choice: { type: "function", name },
      input: [
        user,
        { type: "function_call", call_id: "call_0", name, arguments: "{}" },
        { type: "function_call_output", call_id: "call_0", output: "a" },
      ],
    },
  ],
];

test.each(chosen)(
  "%s: a function's name with dots is the model's, and the client's",
  async (url, payload) => {
    const { app, chat } = createWorld({});
    const call = { id: "call_1", name, arguments: "{}" };
    chat.script = [...callEvents(call), finish("tool_calls", [call])];
    const response = await app.inject({ method: "POST", url, payload });
    expect(response.statusCode).toBe(200);
    const [request] = chat.requests;
    expect(request?.tools.map((tool) => tool.name)).toEqual([name]);
    expect(request?.guidance?.allowed).toEqual([name]);
    expect(JSON.stringify(request?.messages)).toContain(`"${name}"`);
    expect(response.body).toContain(`"name":"${name}"`);
  },
);
