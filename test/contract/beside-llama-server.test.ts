/** What llama-server takes and its clients send: taken here too, with the same meaning. */

import { describe, expect, test } from "vitest";
import { callEvents, createWorld, finish, post } from "./fake-services.ts";

const user = { role: "user", content: "Hi" };
const say = (text: string) => ({ type: "content" as const, text });

describe("stop strings", () => {
  const many = Array.from({ length: 100 }, (_, index) => `name ${index}:`);
  test.each([
    ["", []],
    [[""], []],
    [
      ["", "a", null, "b"],
      ["a", "b"],
    ],
    [many, many],
  ])("%j", async (stop, wanted) => {
    const { app, chat, text } = createWorld();
    expect((await post(app, { messages: [user], stop })).statusCode).toBe(200);
    expect(chat.requests[0]!.stop).toEqual(wanted);
    for (const url of ["/completion", "/v1/completions"]) {
      const reply = await app.inject({ method: "POST", url, payload: { prompt: "a", stop } });
      expect(reply.statusCode).toBe(200);
    }
    expect(text.requests.map((request) => request.stop)).toEqual([wanted, wanted]);
  });
});

describe("n_probs asks for logprobs", () => {
  test.each([
    [{ n_probs: 2 }, 2],
    [{ n_probs: 2, logprobs: true, top_logprobs: 3 }, 3],
    [{ n_probs: 0 }, undefined],
  ])("of a chat completion: %j", async (options, wanted) => {
    const { app, chat } = createWorld();
    expect((await post(app, { messages: [user], ...options })).statusCode).toBe(200);
    expect(chat.requests[0]!.topLogprobs).toBe(wanted);
  });

  test.each([
    [{ n_probs: 2 }, 2],
    [{ n_probs: 2, logprobs: 1 }, 1],
    [{ n_probs: 0 }, undefined],
  ])("of a completion: %j", async (options, wanted) => {
    const { app, text } = createWorld();
    const payload = { prompt: "a", ...options };
    await app.inject({ method: "POST", url: "/v1/completions", payload });
    expect(text.requests[0]!.topLogprobs).toBe(wanted);
  });
});

test("a grammar without text asks for nothing", async () => {
  const { app, chat } = createWorld();
  expect((await post(app, { messages: [user], grammar: "" })).statusCode).toBe(200);
  expect(chat.requests[0]!.guidance?.document).toBeUndefined();
});

test("any temperature that the engine takes", async () => {
  const { app, chat } = createWorld();
  for (const temperature of [2.5, 100]) await post(app, { messages: [user], temperature });
  expect(chat.requests.map(({ sampling }) => sampling.temperature)).toEqual([2.5, 100]);
});

test.each([
  [{ top_k: -7 }, { topK: 0 }],
  [{ top_n_sigma: -5 }, { topNSigma: 0 }],
  [
    { presence_penalty: 5, frequency_penalty: -3 },
    { presencePenalty: 5, frequencyPenalty: -3 },
  ],
])("%j is %j to the sampler", async (options, wanted) => {
  const { app, chat } = createWorld();
  expect((await post(app, { messages: [user], ...options })).statusCode).toBe(200);
  expect(chat.requests[0]!.sampling).toMatchObject(wanted);
});

test("content that is null says nothing", async () => {
  const { app, chat } = createWorld();
  const messages = [
    { role: "system", content: null },
    { role: "user", content: null },
  ];
  expect((await post(app, { messages })).statusCode).toBe(200);
  expect(chat.requests[0]!.messages.map(({ content }) => content)).toEqual(["", ""]);
});

describe("a limit of 0 tokens reads the prompt and answers nothing", () => {
  const limit = { max_tokens: 0 };
  const requests: [url: string, body: object][] = [
    ["/v1/chat/completions", { messages: [user], ...limit }],
    ["/v1/chat/completions", { messages: [user], ...limit, n: 2 }],
    ["/v1/completions", { prompt: "abc", ...limit }],
    ["/v1/messages", { messages: [user], ...limit }],
    ["/v1/responses", { input: "Hi", max_output_tokens: 0 }],
  ];
  const world = () => {
    const world = createWorld();
    world.chat.script = [
      say("Hello"),
      { type: "finish", reason: "stop", calls: [], usage: { ...usageOf(1) } },
    ];
    return world;
  };

  test.each(requests)("%s %j", async (url, payload) => {
    const { app, chat, text } = world();
    const reply = await app.inject({ method: "POST", url, payload });
    expect(reply.statusCode).toBe(200);
    expect(reply.body).not.toMatch(/Hello|yes/);
    expect(reply.body).toMatch(/"(completion|output)_tokens":0/);
    expect(reply.body).toMatch(/"length"|"max_tokens"|"max_output_tokens"/);
    for (const request of [...chat.requests, ...text.requests]) expect(request.maxTokens).toBe(1);
  });

  test.each(requests)("%s %j, streamed", async (url, payload) => {
    const { app } = world();
    const reply = await app.inject({ method: "POST", url, payload: { ...payload, stream: true } });
    expect(reply.statusCode).toBe(200);
    expect(reply.body).not.toMatch(/Hello|yes/);
    expect(reply.body).toMatch(/"length"|"max_tokens"|"max_output_tokens"/);
  });
});

function usageOf(generatedTokens: number) {
  return {
    promptTokens: 20,
    cachedTokens: 0,
    resumedTokens: 0,
    prefilledTokens: 20,
    recomputedTokens: 0,
    generatedTokens,
  };
}

describe("an empty prompt is the token that begins a text", () => {
  test.each([
    ["/completion", ""],
    ["/completion", { prompt_string: "" }],
    ["/v1/completions", ""],
    ["/v1/completions", [""]],
  ])("%s %j", async (url, prompt) => {
    const { app, text } = createWorld();
    const reply = await app.inject({ method: "POST", url, payload: { prompt } });
    expect(reply.statusCode).toBe(200);
    expect([...text.requests[0]!.prompt]).toEqual([..."<s>"].map((one) => one.charCodeAt(0)));
  });
});

test("as many answers at best as are asked for", async () => {
  const { app } = createWorld();
  const complete = async (body: object) =>
    app.inject({ method: "POST", url: "/v1/completions", payload: { prompt: "a", ...body } });
  expect((await complete({ n: 2, best_of: 2 })).json().choices).toHaveLength(2);
  const refused = await complete({ n: 1, best_of: 3 });
  expect(refused.statusCode).toBe(400);
  expect(refused.json().error.param).toBe("best_of");
});

test.each([{}, { input: [] }, { input: null }])(
  "/v1/responses %j has nothing to answer",
  async (payload) => {
    const { app, chat } = createWorld();
    const reply = await app.inject({ method: "POST", url: "/v1/responses", payload });
    expect(reply.statusCode).toBe(400);
    expect(reply.json().error).toMatchObject({ param: "input", code: "missing_field" });
    expect(chat.requests).toEqual([]);
  },
);

test("a tool that is listed twice is one", async () => {
  const { app, chat } = createWorld();
  const tool = { type: "function", function: { name: "f", parameters: { type: "object" } } };
  const reply = await post(app, { messages: [user], tools: [tool, tool] });
  expect(reply.statusCode).toBe(200);
  expect(chat.requests[0]!.tools.map(({ name }) => name)).toEqual(["f"]);
});

describe("results without the id of their call", () => {
  const call = (id: string, name: string) => ({
    id,
    type: "function",
    function: { name, arguments: "{}" },
  });
  const calls = { role: "assistant", tool_calls: [call("c1", "f"), call("c2", "g")] };
  const read = async (...results: object[]) => {
    const { app, chat } = createWorld();
    const reply = await post(app, {
      messages: [user, calls, ...results.map((one) => ({ role: "tool", ...one }))],
    });
    const given = chat.requests[0]?.messages.slice(2) ?? [];
    return {
      status: reply.statusCode,
      param: reply.statusCode === 200 ? undefined : reply.json().error.param,
      results: given.map((one) => one.role === "tool" && [one.toolCallId, one.name, one.content]),
    };
  };

  test("in the order of the calls", async () => {
    const { results } = await read({ content: "1" }, { content: "2" });
    expect(results).toEqual([
      ["c1", "f", "1"],
      ["c2", "g", "2"],
    ]);
  });

  test("by the tool's name", async () => {
    const { results } = await read({ name: "g", content: "2" }, { content: "1" });
    expect(results).toEqual([
      ["c2", "g", "2"],
      ["c1", "f", "1"],
    ]);
  });

  test("an id that no call has, where one call waits", async () => {
    const { results } = await read(
      { tool_call_id: "c1", content: "1" },
      { tool_call_id: "other", content: "2" },
    );
    expect(results).toEqual([
      ["c1", "f", "1"],
      ["c2", "g", "2"],
    ]);
  });

  test.each([[{ tool_call_id: "other", content: "?" }], [{ name: "h", content: "?" }]])(
    "%j could be any call's",
    async (result) => {
      expect(await read(result)).toMatchObject({ status: 400, param: "messages[2].tool_call_id" });
    },
  );

  test("more results than calls", async () => {
    const more = [{ content: "1" }, { content: "2" }, { content: "3" }];
    expect(await read(...more)).toMatchObject({ status: 400, param: "messages[4].tool_call_id" });
  });
});

describe("reasoning_format", () => {
  const asked = async (options: object, script = chatScript) => {
    const { app, chat } = createWorld();
    chat.script = script;
    return post(app, { messages: [user], ...options });
  };
  const chatScript = [
    { type: "reasoning" as const, text: "Hm," },
    { type: "reasoning" as const, text: " yes." },
    say("Hello."),
    finish("stop"),
  ];

  test("none: reasoning stands in the content", async () => {
    const { message } = (await asked({ reasoning_format: "none" })).json().choices[0];
    expect(message.content).toBe("<think>\nHm, yes.\n</think>\n\nHello.");
    expect(message).not.toHaveProperty("reasoning_content");
    const stream = await asked({ reasoning_format: "none", stream: true });
    expect(stream.body).not.toContain("reasoning_content");
  });

  test("none: a call closes it, and reasoning that is cut stays open", async () => {
    const call = { id: "c1", name: "look", arguments: "{}" };
    const tools = [{ type: "function", function: { name: "look", parameters: {} } }];
    const called = [chatScript[0]!, ...callEvents(call), finish("tool_calls", [call])];
    const { message } = (await asked({ reasoning_format: "none", tools }, called)).json()
      .choices[0];
    expect(message.content).toBe("<think>\nHm,\n</think>\n\n");
    expect(message.tool_calls).toHaveLength(1);
    const cut = await asked({ reasoning_format: "none" }, [chatScript[0]!, finish("length")]);
    expect(cut.json().choices[0].message.content).toBe("<think>\nHm,");
  });

  test.each(["auto", "deepseek"])("%s: it is told apart", async (reasoning_format) => {
    const { message } = (await asked({ reasoning_format })).json().choices[0];
    expect(message).toMatchObject({ content: "Hello.", reasoning_content: "Hm, yes." });
  });

  test("another one is refused", async () => {
    const response = await asked({ reasoning_format: "what" });
    expect([response.statusCode, response.json().error.param]).toEqual([400, "reasoning_format"]);
  });
});
