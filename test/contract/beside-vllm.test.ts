// Fields of vLLM, SGLang, TGI and mistral.rs that their clients send to every server.
import type { FastifyInstance } from "fastify";
import { describe, expect, test } from "vitest";
import { createWorld, finish, type ScriptStep, sseEvents } from "./fake-services.ts";

const messages = [{ role: "user", content: "Hi" }];
const chat = "/v1/chat/completions";
const thoughtful: ScriptStep[] = [
  { type: "reasoning", text: "Hm." },
  { type: "content", text: "Yes" },
  finish("stop"),
];

function post(app: FastifyInstance, url: string, body: object) {
  return app.inject({ method: "POST", url, payload: body });
}

async function chunksOf(app: FastifyInstance, url: string, body: object) {
  const response = await post(app, url, { ...body, stream: true });
  expect(response.statusCode).toBe(200);
  return sseEvents(response.body).slice(0, -1) as {
    prompt_token_ids?: number[];
    choices: {
      text?: string;
      delta?: { content?: string };
      token_ids?: number[];
      prompt_token_ids?: number[];
      logprobs: { tokens: string[]; text_offset: number[] } | null;
      finish_reason: string | null;
    }[];
    usage?: object | null;
  }[];
}

describe("which tokens may be written", () => {
  const rules = {
    min_tokens: 3,
    stop_token_ids: [2, 7],
    bad_words: ["no"],
    allowed_token_ids: [1, 2],
    include_stop_str_in_output: true,
  };
  const read = {
    minTokens: 3,
    stopTokens: Int32Array.of(2, 7),
    allowed: Int32Array.of(1, 2),
    keepsStop: true,
  };

  test("reaches the chat layer", async () => {
    const world = createWorld();
    expect((await post(world.app, chat, { messages, ...rules })).statusCode).toBe(200);
    expect(world.chat.requests[0]?.sampling.rules).toEqual({ ...read, bannedTexts: ["no"] });
  });

  test.each(["/v1/completions", "/completion"])("%s: bad words as their tokens", async (url) => {
    const { app, text } = createWorld();
    expect((await post(app, url, { prompt: "a", ...rules })).statusCode).toBe(200);
    expect(text.requests[0]?.sampling?.rules).toEqual({
      ...read,
      banned: [Int32Array.of(110, 111), Int32Array.of(32, 110, 111)],
    });
  });

  test.each([{}, { min_tokens: 0, stop_token_ids: [], bad_words: [], allowed_token_ids: [] }])(
    "none: %j",
    async (body) => {
      const world = createWorld();
      await post(world.app, chat, { messages, ...body });
      expect(world.chat.requests[0]?.sampling.rules).toBeUndefined();
    },
  );

  test("SGLang's name for keeping the stop string", async () => {
    const world = createWorld();
    await post(world.app, chat, { messages, no_stop_trim: true });
    expect(world.chat.requests[0]?.sampling.rules).toMatchObject({ keepsStop: true });
  });

  test.each(Object.entries(rules))("%s is no field of Anthropic's", async (name, value) => {
    const response = await post(createWorld().app, "/v1/messages", {
      model: "tiny",
      max_tokens: 5,
      messages,
      [name]: value,
    });
    expect(response.statusCode).toBe(400);
    expect(response.json().error.message).toContain(name);
  });

  test("what ended the text", async () => {
    const world = createWorld();
    const end = finish("stop") as object;
    for (const [told, reason] of [
      [{ stopString: "END" }, "END"],
      [{ stopToken: 7 }, 7],
      [{}, undefined],
    ] as const) {
      world.chat.script = [{ ...end, ...told } as never];
      const { choices } = (await post(world.app, chat, { messages })).json();
      expect([choices[0].finish_reason, choices[0].stop_reason]).toEqual(["stop", reason]);
    }
  });
});

describe("ids of tokens", () => {
  test("of a chat, and in its chunks", async () => {
    const { app, chat: model } = createWorld();
    model.script = [
      { tokens: [11, 12] },
      { type: "content", text: "He" },
      { tokens: [13] },
      { type: "content", text: "y" },
      { tokens: [2] },
      finish("stop"),
    ];
    const body = { messages, return_token_ids: true };
    const whole = (await post(app, chat, body)).json();
    expect(whole.prompt_token_ids).toEqual([5, 6, 7]);
    expect(whole.choices[0].token_ids).toEqual([11, 12, 13, 2]);
    const chunks = await chunksOf(app, chat, body);
    expect(chunks[0]?.prompt_token_ids).toEqual([5, 6, 7]);
    expect(chunks.slice(1).some((chunk) => "prompt_token_ids" in chunk)).toBe(false);
    expect(chunks.flatMap(({ choices }) => choices[0]?.token_ids ?? [])).toEqual([11, 12, 13, 2]);
    const plain = (await post(app, chat, { messages })).json();
    expect([plain.prompt_token_ids, plain.choices[0].token_ids]).toEqual([undefined, undefined]);
  });

  test("of a text, and in its chunks, each with its own", async () => {
    const { app } = createWorld();
    const body = { prompt: "ab", return_token_ids: true, logprobs: 1 };
    const [choice] = (await post(app, "/v1/completions", body)).json().choices;
    expect([choice.prompt_token_ids, choice.token_ids]).toEqual([
      [97, 98],
      [121, 101, 115],
    ]);
    const named = { ...body, return_tokens_as_token_ids: true };
    const chunks = await chunksOf(app, "/v1/completions", named);
    expect(chunks[0]?.choices[0]?.prompt_token_ids).toEqual([97, 98]);
    const told = chunks.flatMap(({ choices }) => choices[0]!);
    expect(told.flatMap(({ token_ids: ids = [] }) => ids)).toEqual([121, 101, 115]);
    expect(told.flatMap(({ logprobs }) => logprobs?.tokens ?? [])).toEqual([
      "token_id:121",
      "token_id:101",
      "token_id:115",
    ]);
  });

  test("in the log-probabilities of a chat", async () => {
    const { app, chat: model } = createWorld();
    const bytes = new TextEncoder().encode("y");
    const top = [{ token: 8, bytes, logprob: -0.5 }];
    const logprobs = [{ token: 8, bytes, logprob: -0.5, top }];
    model.script = [{ type: "content", text: "y", logprobs }, finish("stop")];
    const asked = { messages, logprobs: true, top_logprobs: 1, return_tokens_as_token_ids: true };
    const { content } = (await post(app, chat, asked)).json().choices[0].logprobs;
    expect([content[0].token, content[0].top_logprobs[0].token]).toEqual([
      "token_id:8",
      "token_id:8",
    ]);
  });
});

describe("log-probabilities of a prompt", () => {
  const echoed = {
    tokens: ["a", "b", "c", "y", "e"],
    token_logprobs: [null, -0.5, -0.5, -0.25, -0.25],
    top_logprobs: [
      null,
      { x: -0.125, b: -0.5 },
      { x: -0.125, c: -0.5 },
      { y: -0.25 },
      { e: -0.25 },
    ],
    text_offset: [0, 1, 2, 3, 4],
  };

  test("that is echoed stand before the answer's", async () => {
    const { app, text } = createWorld();
    const body = { prompt: "abc", echo: true, logprobs: 1, max_tokens: 2 };
    const { choices } = (await post(app, "/v1/completions", body)).json();
    expect(choices[0]).toMatchObject({ text: "abcye", logprobs: echoed });
    expect(text.requests[0]).toMatchObject({ promptLogprobs: 1, topLogprobs: 1 });
    const chunks = await chunksOf(app, "/v1/completions", body);
    expect(chunks.map(({ choices: [choice] }) => choice!.text)).toEqual(["abc", "y", "e", ""]);
    const told = chunks.flatMap(({ choices: [choice] }) => choice!.logprobs ?? []);
    expect(told.flatMap(({ tokens }) => tokens)).toEqual(echoed.tokens);
    expect(told.flatMap(({ text_offset: offsets }) => offsets)).toEqual(echoed.text_offset);
  });

  test("with no token to come: what lm-eval asks for", async () => {
    const { app } = createWorld();
    const body = { prompt: [97, 98, 99], echo: true, logprobs: 1, max_tokens: 0 };
    const [choice] = (await post(app, "/v1/completions", body)).json().choices;
    expect(choice.text).toBe("abc");
    expect(choice.logprobs.token_logprobs).toEqual([null, -0.5, -0.5]);
  });

  test("have an entry behind them when the answer is no more than its end", async () => {
    const { app, text } = createWorld();
    text.says = "";
    text.endToken = 33;
    const body = { prompt: "abc", echo: true, logprobs: 1, max_tokens: 1 };
    const [choice] = (await post(app, "/v1/completions", body)).json().choices;
    expect(choice).toMatchObject({ text: "abc", finish_reason: "stop" });
    expect(choice.logprobs).toMatchObject({
      token_logprobs: [null, -0.5, -0.5, -0.25],
      top_logprobs: [null, { b: -0.5 }, { c: -0.5 }, { "!": -0.25 }],
      text_offset: [0, 1, 2, 3],
    });
    const chunks = await chunksOf(app, "/v1/completions", body);
    const told = chunks.flatMap(({ choices: [one] }) => one!.logprobs ?? []);
    expect(told.flatMap(({ tokens }) => tokens)).toEqual(["a", "b", "c", "!"]);
    const plain = { prompt: "abc", logprobs: 1 };
    const [other] = (await post(app, "/v1/completions", plain)).json().choices;
    expect(other.logprobs.tokens).toEqual([]);
  });

  test("as prompt_logprobs", async () => {
    const { app, chat: model } = createWorld();
    const body = { prompt: ["ab", "c"], prompt_logprobs: 1 };
    const { choices } = (await post(app, "/v1/completions", body)).json();
    const told = [
      { "98": { logprob: -0.5, rank: null, decoded_token: "b" } },
      { "120": { logprob: -0.125, rank: 1, decoded_token: "x" } },
    ];
    expect(choices.map((one: { prompt_logprobs: unknown }) => one.prompt_logprobs)).toEqual([
      [null, { ...told[0], ...told[1] }],
      [null],
    ]);
    expect((await post(app, chat, { messages, prompt_logprobs: 0 })).json()).toMatchObject({
      prompt_logprobs: [null],
    });
    expect(model.requests[0]?.promptLogprobs).toBe(0);
  });
});

describe("usage of a stream", () => {
  const all = { include_usage: true, continuous_usage_stats: true };

  test("in every chunk", async () => {
    const { app, chat: model } = createWorld();
    model.script = [
      { tokens: [1] },
      { type: "content", text: "a" },
      { tokens: [2] },
      finish("stop"),
    ];
    const chunks = await chunksOf(app, chat, { messages, stream_options: all });
    const told = chunks.slice(0, -1).map(({ usage }) => usage as Record<string, number>);
    for (const usage of told)
      expect(usage).toEqual({
        prompt_tokens: 3,
        completion_tokens: expect.any(Number),
        total_tokens: 3 + usage["completion_tokens"]!,
      });
    const counts = told.map((usage) => usage["completion_tokens"]!);
    expect(counts).toEqual(counts.toSorted((a, b) => a - b));
    expect(counts.at(-1)).toBe(2);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 7 } });
    const texts = await chunksOf(app, "/v1/completions", { prompt: "ab", stream_options: all });
    for (const { usage } of texts)
      expect(usage).toMatchObject({ prompt_tokens: 2, completion_tokens: expect.any(Number) });
    expect(texts.at(-1)?.usage).toMatchObject({ completion_tokens: 3, total_tokens: 5 });
  });

  test.each([{ continuous_usage_stats: true }, {}])("not with %j", async (options) => {
    const { app } = createWorld();
    for (const chunk of await chunksOf(app, chat, { messages, stream_options: options }))
      expect(chunk.usage).toBeUndefined();
  });

  test.each([{ include_usage: true }, { include_usage: null }, {}])(
    "%j without a stream is refused, as at OpenAI",
    async (options) => {
      const response = await post(createWorld().app, chat, { messages, stream_options: options });
      expect(response.statusCode).toBe(400);
      expect(response.json().error.param).toBe("stream_options");
    },
  );
});

describe("the prompt", () => {
  test("is cut where it is asked for", async () => {
    const { app, text } = createWorld();
    const body = { prompt: [1, 2, 3, 4, 5], truncate_prompt_tokens: 2, echo: true };
    expect((await post(app, "/v1/completions", body)).json().choices[0].text).toBe(
      "\u0004\u0005yes",
    );
    await post(app, "/v1/completions", { ...body, truncation_side: "right" });
    await post(app, "/v1/completions", { ...body, truncate_prompt_tokens: -1 });
    expect(text.requests.map(({ prompt }) => [...prompt])).toEqual([
      [4, 5],
      [1, 2],
      [1, 2, 3, 4, 5],
    ]);
  });

  test("control tokens are spelled if they are not skipped, but the end token", async () => {
    const { app, text } = createWorld();
    await post(app, "/v1/completions", { prompt: "a", skip_special_tokens: false });
    await post(app, "/v1/completions", { prompt: "a", skip_special_tokens: true });
    expect(text.requests.map(({ spelledTokens }) => spelledTokens)).toEqual([
      Int32Array.of(1),
      undefined,
    ]);
  });

  test("documents go to the template", async () => {
    const { app, chat: model } = createWorld();
    const documents = [{ title: "A", text: "B" }];
    await post(app, chat, { messages, documents, chat_template_kwargs: { x: 1 } });
    expect(model.requests[0]?.templateVariables).toEqual({ documents, x: 1 });
  });

  test.each([
    [{ chat_template: "{{ messages }}" }, "chat_template"],
    [{ truncate_prompt_tokens: 5 }, "truncate_prompt_tokens"],
  ])("%j is refused on a chat", async (body, param) => {
    const response = await post(createWorld().app, chat, { messages, ...body });
    expect(response.statusCode).toBe(400);
    expect(response.json().error.param).toBe(param);
  });
});

describe("the answer", () => {
  const begun = [...messages, { role: "assistant", content: "Once" }];

  test("is told with its beginning", async () => {
    const { app } = createWorld();
    const body = { messages: begun, echo: true, continue_final_message: true };
    expect((await post(app, chat, body)).json().choices[0].message.content).toBe("OnceHello.");
    const chunks = await chunksOf(app, chat, body);
    expect(chunks.map(({ choices }) => choices[0]?.delta?.content ?? "").join("")).toBe(
      "OnceHello.",
    );
    const unechoed = (await post(app, chat, { messages: begun })).json();
    expect(unechoed.choices[0].message.content).toBe("Hello.");
  });

  test("without its reasoning, or with it inside", async () => {
    const { app, chat: model } = createWorld();
    model.script = thoughtful;
    const said = async (body: object) =>
      (await post(app, chat, { messages, ...body })).json().choices[0].message;
    expect(await said({})).toMatchObject({ content: "Yes", reasoning_content: "Hm." });
    expect(await said({ include_reasoning: false })).not.toHaveProperty("reasoning_content");
    expect(await said({ separate_reasoning: false })).toMatchObject({
      content: "<think>\nHm.\n</think>\n\nYes",
    });
  });
});

describe("reasoning, as SGLang, Ollama and OpenRouter have it", () => {
  test.each<[object, object]>([
    [{ reasoning: { effort: "high" } }, { reasoning_effort: "high" }],
    [{ reasoning: { reasoning_effort: "low" } }, { reasoning_effort: "low" }],
    [{ reasoning: { effort: "none" }, reasoning_effort: "high" }, { reasoning_effort: "none" }],
    [{ reasoning: {}, reasoning_effort: "high" }, { reasoning_effort: "high" }],
    [{ reasoning: { enabled: true } }, { enable_thinking: true }],
    [
      { reasoning: { enabled: false }, chat_template_kwargs: { enable_thinking: true } },
      { enable_thinking: true },
    ],
    [
      { reasoning: { enabled: false, effort: "low", max_tokens: 100 } },
      { reasoning_effort: "low", enable_thinking: false },
    ],
    [{ reasoning: null }, {}],
  ])("%j", async (body, expected) => {
    const { app, chat: model } = createWorld();
    expect((await post(app, chat, { messages, ...body })).statusCode).toBe(200);
    expect(model.requests[0]!.templateVariables).toEqual(expected);
  });

  test("may be left out of the answer", async () => {
    const { app, chat: model } = createWorld();
    model.script = thoughtful;
    const reply = await post(app, chat, { messages, reasoning: { exclude: true } });
    expect(reply.json().choices[0].message).not.toHaveProperty("reasoning_content");
  });

  test.each<[unknown, string]>([
    [{ effort: "much" }, "reasoning.effort"],
    [{ enabled: "yes" }, "reasoning.enabled"],
    ["high", "reasoning"],
  ])("%j is refused", async (reasoning, param) => {
    const reply = await post(createWorld().app, chat, { messages, reasoning });
    expect([reply.statusCode, reply.json().error.param]).toEqual([400, param]);
  });
});

describe("forms of the answer", () => {
  const schema = { type: "object", properties: { a: { type: "integer" } } };

  test.each([
    [{ regex: "[ab]+" }, { kind: "regex", pattern: "[ab]+" }],
    [{ ebnf: 'root ::= "a"' }, { kind: "grammar", text: 'root ::= "a"' }],
    [{ grammar: { type: "regex", value: "a+" } }, { kind: "regex", pattern: "a+" }],
    [{ grammar: { type: "json_schema", value: schema } }, { kind: "json_schema", schema }],
    [{ grammar: { type: "lark", value: "start: /a/" } }, { kind: "grammar", text: "start: /a/" }],
    [{ response_format: { type: "json", value: schema } }, { kind: "json_schema", schema }],
    [{ response_format: { type: "json_object", value: schema } }, { kind: "json_schema", schema }],
    [{ response_format: { type: "regex", value: "a+" } }, { kind: "regex", pattern: "a+" }],
  ])("%j", async (body, document) => {
    const { app, chat: model } = createWorld();
    expect((await post(app, chat, { messages, ...body })).statusCode).toBe(200);
    expect(model.requests[0]?.guidance?.document).toMatchObject(document);
  });
});

describe("/tokenize as vLLM has it", () => {
  test("a text", async () => {
    const { app } = createWorld();
    const body = { model: "tiny", prompt: "ab" };
    const counted = { count: 2, max_model_len: 1000, tokens: [97, 98] };
    expect((await post(app, "/tokenize", body)).json()).toEqual({ ...counted, token_strs: null });
    expect((await post(app, "/tokenize", { ...body, return_token_strs: true })).json()).toEqual({
      ...counted,
      token_strs: ["a", "b"],
    });
  });

  test("what the tokenizer adds, and the template", async () => {
    const { app } = createWorld();
    expect((await app.inject("/tokenizer_info")).json()).toEqual({
      tokenizer_class: "GGUF",
      model_max_length: 1000,
      add_bos_token: expect.any(Boolean),
      bos_token: "<s>",
      eos_token: "</s>",
      pad_token: null,
      chat_template: "{{ messages }}",
    });
  });

  test("a chat", async () => {
    const { app } = createWorld();
    const closed = { messages, add_generation_prompt: false };
    const tokens = (text: string) => Array.from(text, (one) => one.charCodeAt(0));
    expect((await post(app, "/tokenize", closed)).json()).toMatchObject({
      count: 16,
      tokens: tokens("[user]Hi, closed"),
    });
  });
});
