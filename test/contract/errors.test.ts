import { describe, expect, test } from "vitest";
import { FermataError, type ErrorCode } from "../../src/errors.ts";
import { createWorld, post } from "./fake-services.ts";

const user = { role: "user", content: "Hi" };
const tool = (name: unknown) => ({ type: "function", function: { name } });
const assistant = (toolCall: unknown) => ({
  role: "assistant",
  content: null,
  tool_calls: [toolCall],
});

describe("a malformed body is a 400 that names the field", () => {
  const cases: [body: object, param: string, code: string][] = [
    [{}, "messages", "missing_field"],
    [{ messages: "Hi" }, "messages", "invalid_type"],
    [{ messages: [] }, "messages", "invalid_value"],
    [{ messages: [user, "Hi"] }, "messages[1]", "invalid_type"],
    [{ messages: [{ content: "Hi" }] }, "messages[0].role", "missing_field"],
    [{ messages: [{ role: "robot", content: "Hi" }] }, "messages[0].role", "invalid_value"],
    [
      { messages: [user, user, { role: "user", content: 5 }] },
      "messages[2].content",
      "invalid_type",
    ],
    [{ messages: [{ role: "user" }] }, "messages[0].content", "missing_field"],
    [
      {
        messages: [user],
        response_format: { type: "json_schema", json_schema: { type: "object" } },
      },
      "response_format.json_schema.schema",
      "missing_field",
    ],
    [
      { messages: [{ role: "user", content: [{ type: "text" }] }] },
      "messages[0].content[0].text",
      "missing_field",
    ],
    [
      { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }] },
      "messages[0].content[0].type",
      "image_not_supported",
    ],
    [
      { messages: [{ role: "user", content: [{ type: "input_audio" }] }] },
      "messages[0].content[0].type",
      "unsupported_value",
    ],
    [
      { messages: [user, { role: "tool", content: "5" }] },
      "messages[1].tool_call_id",
      "invalid_value",
    ],
    [
      { messages: [user, { role: "tool", tool_call_id: "nope", content: "5" }] },
      "messages[1].tool_call_id",
      "invalid_value",
    ],
    [
      { messages: [assistant({ type: "function", function: { name: "f" } })] },
      "messages[0].tool_calls[0].id",
      "missing_field",
    ],
    [
      { messages: [assistant({ id: "a", function: "f" })] },
      "messages[0].tool_calls[0].function",
      "invalid_type",
    ],
    [{ messages: [user], temperature: "hot" }, "temperature", "invalid_type"],
    [{ messages: [user], temperature: 101 }, "temperature", "invalid_value"],
    [{ messages: [user], top_p: -0.1 }, "top_p", "invalid_value"],
    [{ messages: [user], max_tokens: -2 }, "max_tokens", "invalid_value"],
    [{ messages: [user], max_tokens: 1.5 }, "max_tokens", "invalid_value"],
    [{ messages: [user], seed: 0.5 }, "seed", "invalid_value"],
    [{ messages: [user], stop: ["a", 5] }, "stop[1]", "invalid_type"],
    [{ messages: [user], stop: Array.from({ length: 257 }, () => "a") }, "stop", "invalid_value"],
    [{ messages: [user], stream: "yes" }, "stream", "invalid_type"],
    [
      { messages: [user], stream: true, stream_options: { include_usage: 1 } },
      "stream_options.include_usage",
      "invalid_type",
    ],
    [{ messages: [user], logit_bias: { "500": 1 } }, "logit_bias.500", "invalid_value"],
    [{ messages: [user], logit_bias: { "5": 101 } }, "logit_bias.5", "invalid_value"],
    [{ messages: [user], model: 5 }, "model", "invalid_type"],
    [{ messages: [user], tools: {} }, "tools", "invalid_type"],
    [{ messages: [user], tools: [tool(undefined)] }, "tools[0].function.name", "missing_field"],
    [{ messages: [user], tools: [tool("a b")] }, "tools[0].function.name", "invalid_value"],
    [
      {
        messages: [user],
        tools: [tool("a"), { ...tool("a"), function: { name: "a", strict: true } }],
      },
      "tools[1].function.name",
      "invalid_value",
    ],
    [{ messages: [user], tool_choice: "sometimes" }, "tool_choice", "invalid_value"],
    [{ messages: [user], tool_choice: "required" }, "tool_choice", "invalid_value"],
    [
      { messages: [user], tool_choice: { type: "function", function: { name: "a" } } },
      "tool_choice",
      "invalid_value",
    ],
    [
      { messages: [user], tool_choice: { type: "custom", custom: { name: "a" } } },
      "tool_choice",
      "invalid_value",
    ],
    [{ messages: [user], n: 0 }, "n", "invalid_value"],
    [{ messages: [user], logprobs: 5 }, "logprobs", "invalid_type"],
    [{ messages: [user], top_logprobs: 3 }, "top_logprobs", "invalid_value"],
    [
      { messages: [user], response_format: { type: "yaml" } },
      "response_format.type",
      "unsupported_value",
    ],
    [{ messages: [user], parallel_tool_calls: 1 }, "parallel_tool_calls", "invalid_type"],
    [
      { messages: [user], response_format: { type: "json_object" }, guided_regex: "a" },
      "guided_regex",
      "invalid_value",
    ],
    [{ messages: [user], modalities: ["text", "audio"] }, "modalities", "unsupported_value"],
    [{ messages: [user], audio: {} }, "audio", "unsupported_value"],
    [{ messages: [user], functions: [] }, "functions", "unsupported_value"],
    [[user], "body", "invalid_type"],
  ];
  test.each(cases)("%j", async (body, param, code) => {
    const { app, chat } = createWorld();
    const response = await post(app, body);
    expect(response.statusCode).toBe(400);
    const { error } = response.json();
    expect(error).toEqual({
      message: expect.any(String),
      type: "invalid_request_error",
      param,
      code,
    });
    expect(error.message).toMatch(
      new RegExp(`^"${param.replaceAll(/[[\].]/g, "\\$&")}" .+\\. .+\\.$`),
    );
    expect(chat.requests).toEqual([]);
  });
});

describe("what the HTTP layer refuses", () => {
  const send = (payload: string, type: string | undefined) => {
    const headers = type === undefined ? {} : { "content-type": type };
    return createWorld().app.inject({
      method: "POST",
      url: "/v1/chat/completions",
      payload,
      headers,
    });
  };

  test.each([
    ["{", "application/json", 400, "invalid_json"],
    ["", "application/json", 400, "invalid_json"],
    ['{"__proto__": {"messages": []}}', "application/json", 400, "missing_field"],
    ['{"constructor": {"prototype": {}}}', "application/json", 400, "missing_field"],
    ["{}", "application/xml", 415, "unsupported_media_type"],
    ["{", "application/x-www-form-urlencoded", 400, "invalid_json"],
  ])("body %j of type %s", async (payload, type, status, code) => {
    const response = await send(payload, type);
    expect(response.statusCode).toBe(status);
    expect(response.json().error).toMatchObject({ code, type: "invalid_request_error" });
  });

  test("no body at all", async () => {
    const response = await createWorld().app.inject({
      method: "POST",
      url: "/v1/chat/completions",
    });
    expect(response.statusCode).toBe(400);
    expect(response.json().error.param).toBe("body");
  });

  test("an unknown route and a wrong method", async () => {
    const { app } = createWorld();
    const unknown = await app.inject({ url: "/v1/completely?secret=1" });
    expect(unknown.statusCode).toBe(404);
    expect(unknown.json().error).toMatchObject({
      code: "not_found",
      type: "not_found_error",
      param: null,
    });
    expect(unknown.body).not.toContain("secret");
    const wrong = await app.inject({ method: "GET", url: "/v1/completions" });
    expect(wrong.statusCode).toBe(405);
    expect(wrong.headers["allow"]).toBe("POST");
    expect(wrong.json().error.code).toBe("method_not_allowed");
  });
});

describe("what the engine refuses", () => {
  const cases: [ErrorCode, number][] = [
    ["context_length_exceeded", 400],
    ["template_error", 400],
    ["queue_full", 429],
    ["engine_closed", 503],
    ["out_of_cells", 503],
    ["decode_failed", 500],
  ];
  test.each(
    cases.flatMap(([code, status]) => [
      [code, status, false] as const,
      [code, status, true] as const,
    ]),
  )("%s is %i (streamed: %s)", async (code, status, stream) => {
    const { app, chat } = createWorld();
    chat.script = [{ fail: new FermataError(code, "Because.") }];
    const response = await post(app, { messages: [user], stream });
    expect(response.statusCode).toBe(status);
    expect(response.json().error).toMatchObject({
      code,
      message: expect.stringMatching(/^Because\./),
    });
    expect(response.headers["retry-after"]).toBe(
      code === "queue_full" || code === "engine_closed" ? "1" : undefined,
    );
  });

  test("an unknown fault tells nothing of itself", async () => {
    const { app, chat } = createWorld();
    chat.script = [{ fail: new TypeError("cannot read secret of undefined") }];
    const response = await post(app, { messages: [user] });
    expect(response.statusCode).toBe(500);
    expect(response.json().error).toMatchObject({ code: "internal_error", type: "server_error" });
    expect(response.body).not.toMatch(/secret|TypeError|\.ts/);
  });
});
