import { describe, expect, test } from "vitest";
import { callEvents, createWorld, finish, post, sseEvents } from "./fake-services.ts";

const hello = { messages: [{ role: "user", content: "Hi" }] };
const call = { id: "call_1", name: "get_weather", arguments: '{"city":"Rome"}' };
const weather = {
  type: "function",
  function: { name: "get_weather", parameters: { type: "object" } },
};
const identity = {
  id: expect.stringMatching(/^chatcmpl-[0-9a-f]{24}$/),
  created: expect.any(Number),
  model: "tiny",
  system_fingerprint: expect.stringMatching(/^b[0-9a-f]{10}$/),
};
const wireUsage = {
  prompt_tokens: 25,
  completion_tokens: 7,
  total_tokens: 32,
  prompt_tokens_details: { cached_tokens: 12, cache_write_tokens: 13 },
  completion_tokens_details: { reasoning_tokens: 0 },
};

describe("not streamed", () => {
  test("an answer", async () => {
    const { app, chat } = createWorld();
    chat.script = [
      { type: "progress", done: 1, total: 2, cached: 0 },
      { type: "reasoning", text: "Greet " },
      { type: "reasoning", text: "back." },
      { type: "content", text: "Hello" },
      { type: "content", text: "!" },
      finish("stop"),
    ];
    const response = await post(app, hello);
    expect(response.statusCode).toBe(200);
    expect(response.headers["x-request-id"]).toMatch(/^req_/);
    expect(response.json()).toEqual({
      ...identity,
      object: "chat.completion",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "Hello!",
            refusal: null,
            reasoning_content: "Greet back.",
          },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: wireUsage,
    });
  });

  test("tool calls: content is null, empty arguments are {}", async () => {
    const { app, chat } = createWorld();
    const bare = { id: "call_2", name: "get_weather", arguments: "" };
    chat.script = [...callEvents(call), finish("tool_calls", [call, bare])];
    const { choices } = (await post(app, { ...hello, tools: [weather] })).json();
    expect(choices[0]).toEqual({
      index: 0,
      message: {
        role: "assistant",
        content: null,
        refusal: null,
        tool_calls: [
          {
            id: "call_1",
            type: "function",
            function: { name: "get_weather", arguments: '{"city":"Rome"}' },
          },
          { id: "call_2", type: "function", function: { name: "get_weather", arguments: "{}" } },
        ],
      },
      logprobs: null,
      finish_reason: "tool_calls",
    });
  });

  test("a cut answer says length", async () => {
    const { app, chat } = createWorld();
    chat.script = [{ type: "content", text: "Hel" }, finish("length")];
    expect((await post(app, hello)).json().choices[0].finish_reason).toBe("length");
  });
});

describe("streamed", () => {
  test("an answer with usage", async () => {
    const { app, chat } = createWorld();
    chat.script = [
      { type: "reasoning", text: "Hm." },
      { type: "content", text: "Hello" },
      { type: "content", text: "" },
      finish("stop"),
    ];
    const response = await post(app, {
      ...hello,
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(response.headers).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
      "x-request-id": expect.stringMatching(/^req_/),
    });
    const chunk = (delta: object, reason: string | null = null) => ({
      ...identity,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }],
      usage: null,
    });
    expect(sseEvents(response.body)).toEqual([
      chunk({ role: "assistant", content: null }),
      chunk({ reasoning_content: "Hm." }),
      chunk({ content: "Hello" }),
      chunk({}, "stop"),
      { ...identity, object: "chat.completion.chunk", choices: [], usage: wireUsage },
      "[DONE]",
    ]);
    expect(response.body.endsWith("data: [DONE]\n\n")).toBe(true);
  });

  test("tool calls: name first, then arguments, {} for none", async () => {
    const { app, chat } = createWorld();
    const bare = { id: "call_2", name: "get_weather", arguments: "" };
    chat.script = [
      ...callEvents(call),
      { type: "call-start", index: 1, id: bare.id, name: bare.name },
      { type: "call-end", index: 1, call: bare },
      finish("tool_calls", [call, bare]),
    ];
    const response = await post(app, { ...hello, tools: [weather], stream: true });
    const chunks = sseEvents(response.body).slice(1, -1) as {
      choices: [{ delta: unknown; finish_reason: unknown }];
      usage?: unknown;
    }[];
    expect(chunks.map(({ choices: [{ delta, finish_reason }] }) => [delta, finish_reason])).toEqual(
      [
        [
          {
            tool_calls: [
              {
                index: 0,
                id: "call_1",
                type: "function",
                function: { name: "get_weather", arguments: "" },
              },
            ],
          },
          null,
        ],
        [{ tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] }, null],
        [{ tool_calls: [{ index: 0, function: { arguments: '"Rome"}' } }] }, null],
        [
          {
            tool_calls: [
              {
                index: 1,
                id: "call_2",
                type: "function",
                function: { name: "get_weather", arguments: "" },
              },
            ],
          },
          null,
        ],
        [{ tool_calls: [{ index: 1, function: { arguments: "{}" } }] }, null],
        [{}, "tool_calls"],
      ],
    );
    expect(chunks.every((chunk) => !("usage" in chunk))).toBe(true);
  });

  test("a failure before the first token has its status, one later is an event", async () => {
    const { app, chat } = createWorld();
    chat.script = [{ fail: new TypeError("secret") }];
    expect((await post(app, { ...hello, stream: true })).statusCode).toBe(500);

    chat.script = [{ type: "content", text: "Hel" }, { fail: new TypeError("secret") }];
    const response = await post(app, { ...hello, stream: true });
    expect(response.statusCode).toBe(200);
    expect(response.body).not.toContain("secret");
    expect(response.body).not.toContain("[DONE]");
    expect(sseEvents(response.body).at(-1)).toEqual({
      error: {
        message: expect.any(String),
        type: "server_error",
        param: null,
        code: "internal_error",
      },
    });
  });
});

describe("what reaches the chat layer", () => {
  test("defaults", async () => {
    const { app, chat } = createWorld();
    await post(app, hello);
    expect(chat.requests[0]).toMatchObject({
      messages: [{ role: "user", content: "Hi" }],
      tools: [],
      toolMode: "none",
      stop: [],
      maxTokens: undefined,
      owner: "anonymous",
      sampling: { temperature: 0.7, topK: 40, seed: expect.any(Number), logitBias: [] },
    });
  });

  test("seeds of 64 bits are taken, and differ", async () => {
    const { app, chat } = createWorld();
    const given = ["9223372036854775807", "-9223372036854775808", "18446744073709551615"];
    for (const seed of [...given, "1234567890123456789", "1234567890123999999"]) {
      const payload = `{"messages":[{"role":"user","content":"Hi"}],"seed":${seed}}`;
      const headers = { "content-type": "application/json" };
      const url = "/v1/chat/completions";
      const { statusCode } = await app.inject({ method: "POST", url, payload, headers });
      expect(statusCode).toBe(200);
    }
    const seeds = chat.requests.map(({ sampling }) => sampling.seed!);
    expect(seeds.every((seed) => Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32)).toBe(true);
    expect(seeds[3]).not.toBe(seeds[4]);
  });

  test("-1 draws a seed, as llama-server does", async () => {
    const { app, chat } = createWorld();
    for (let i = 0; i < 3; i++) await post(app, { ...hello, seed: -1 });
    const seeds = chat.requests.map(({ sampling }) => sampling.seed);
    expect(new Set(seeds).size).toBe(3);
  });

  test("parameters; a limit beyond the context is clamped", async () => {
    const { app, chat } = createWorld();
    await post(app, {
      ...hello,
      temperature: 0,
      top_p: 0.5,
      top_k: -1,
      min_p: 0.1,
      seed: -2,
      stop: "END",
      frequency_penalty: 1,
      presence_penalty: -1,
      logit_bias: { "7": -100 },
      max_tokens: 10,
      max_completion_tokens: 8000,
    });
    expect(chat.requests[0]).toMatchObject({
      stop: ["END"],
      maxTokens: 1000,
      sampling: {
        temperature: 0,
        topP: 0.5,
        topK: 0,
        minP: 0.1,
        seed: 4294967294,
        frequencyPenalty: 1,
        presencePenalty: -1,
        logitBias: [[7, -100]],
      },
    });
  });

  test("any model name means the loaded model", async () => {
    const { app } = createWorld();
    for (const model of [undefined, "default", "gpt-5", "tiny"]) {
      expect((await post(app, { ...hello, model })).json().model).toBe("tiny");
    }
  });
});
