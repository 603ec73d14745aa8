import type { FastifyInstance } from "fastify";
import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { createWorld, sseEvents } from "./fake-services.ts";

type Completion = OpenAI.Completion;

function complete(app: FastifyInstance, body: object, url = "/v1/completions") {
  return app.inject({ method: "POST", url, payload: body });
}

describe("/v1/completions", () => {
  test("a text", async () => {
    const { app, text } = createWorld();
    const body = (await complete(app, { prompt: "abc" })).json();
    expect(body).toEqual({
      id: expect.stringMatching(/^cmpl-[0-9a-f]{24}$/),
      object: "text_completion",
      created: expect.any(Number),
      model: "tiny",
      system_fingerprint: expect.stringMatching(/^b[0-9a-f]{10}$/),
      choices: [{ index: 0, text: "yes", logprobs: null, finish_reason: "stop" }],
      usage: {
        prompt_tokens: 3,
        completion_tokens: 3,
        total_tokens: 6,
        prompt_tokens_details: { cached_tokens: 12, cache_write_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
      timings: expect.objectContaining({ cache_n: 12, predicted_n: 3 }),
    });
    expect(text.requests[0]).toMatchObject({
      prompt: Int32Array.of(97, 98, 99),
      maxTokens: 16,
      stop: [],
      topLogprobs: undefined,
    });
  });

  test("prompts and choices: each prompt counts once, choices of one are neighbours", async () => {
    const { app, text } = createWorld();
    const options = { n: 2, seed: 7, max_tokens: 2, echo: true, stop: ["x", "y"] };
    const body: Completion = (
      await complete(app, { prompt: ["ab", [99, 100, 101]], ...options })
    ).json();
    expect(body.choices.map((choice) => [choice.index, choice.text, choice.finish_reason])).toEqual(
      [
        [0, "abye", "length"],
        [1, "abye", "length"],
        [2, "cdeye", "length"],
        [3, "cdeye", "length"],
      ],
    );
    expect(body.usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 8 });
    expect(text.requests.map(({ sampling }) => sampling?.seed)).toEqual([7, 8, 7, 8]);
    expect(text.requests[0]).toMatchObject({ stop: ["x", "y"], maxTokens: 2 });
  });

  test("a list of numbers is one prompt", async () => {
    const { app, text } = createWorld();
    await complete(app, { prompt: [97, 98] });
    expect(text.requests.map(({ prompt }) => [...prompt])).toEqual([[97, 98]]);
  });

  test("streamed, with the prompt first and the usage last", async () => {
    const { app } = createWorld();
    const options = { echo: true, stream: true, stream_options: { include_usage: true } };
    const events = sseEvents((await complete(app, { prompt: "ab", ...options })).body);
    expect(events.at(-1)).toBe("[DONE]");
    const chunks = events.slice(0, -1) as Completion[];
    expect(
      chunks.map(({ choices }) => choices.map((choice) => [choice.text, choice.finish_reason])),
    ).toEqual([[["ab", null]], [["y", null]], [["e", null]], [["s", null]], [["", "stop"]], []]);
    expect(chunks.at(-1)).toMatchObject({ usage: { prompt_tokens: 2, completion_tokens: 3 } });
  });

  test("logprobs in the old shape, streamed or not", async () => {
    const { app } = createWorld();
    const whole = {
      tokens: ["y", "e", "s"],
      token_logprobs: [-0.25, -0.25, -0.25],
      top_logprobs: [{ y: -0.25 }, { e: -0.25 }, { s: -0.25 }],
      text_offset: [0, 1, 2],
    };
    const body = { prompt: "a", logprobs: 1 };
    expect((await complete(app, body)).json().choices[0].logprobs).toEqual(whole);
    const events = sseEvents((await complete(app, { ...body, stream: true })).body);
    const told = (events.slice(0, -2) as Completion[]).map(({ choices }) => choices[0]!.logprobs);
    expect(told.map((logprobs) => logprobs?.text_offset)).toEqual([[0], [1], [2]]);
    // The token that came is told beside the alternatives.
    const none = (await complete(app, { ...body, logprobs: 0 })).json();
    expect(none.choices[0].logprobs).toEqual(whole);
  });

  test.each([
    [{}, "prompt", "missing_field"],
    [{ prompt: [] }, "prompt", "invalid_value"],
    [{ prompt: [] }, "prompt", "invalid_value"],
    [{ prompt: 5 }, "prompt", "invalid_type"],
    [{ prompt: ["a", 5] }, "prompt[1]", "invalid_type"],
    [{ prompt: [[1, 500]] }, "prompt[0][1]", "invalid_value"],
    [{ prompt: [1.5] }, "prompt[0]", "invalid_value"],
    [{ prompt: "a", n: 0 }, "n", "invalid_value"],
    [{ prompt: ["a", "b"], n: 65 }, "n", "invalid_value"],
    [{ prompt: "a", logprobs: 21 }, "logprobs", "invalid_value"],
    [{ prompt: "a", prompt_logprobs: -1 }, "prompt_logprobs", "invalid_value"],
    [{ prompt: "a", prompt_logprobs: 1, stream: true }, "prompt_logprobs", "invalid_value"],
    [{ prompt: "a", stream_options: {} }, "stream_options", "invalid_value"],
    [{ prompt: "a", best_of: 2 }, "best_of", "unsupported_value"],
    [{ prompt: "a", max_tokens: -2 }, "max_tokens", "invalid_value"],
    [[], "body", "invalid_type"],
  ])("%j names %s", async (body, param, code) => {
    const response = await complete(createWorld().app, body);
    expect(response.statusCode).toBe(400);
    expect(response.json().error).toMatchObject({ param, code });
  });
});

describe("llama-server's endpoints", () => {
  test("tokens of a text and back", async () => {
    const { app } = createWorld();
    expect((await complete(app, { content: "ab" }, "/tokenize")).json()).toEqual({
      tokens: [97, 98],
    });
    const pieces = (await complete(app, { content: "a", with_pieces: true }, "/tokenize")).json();
    expect(pieces).toEqual({ tokens: [{ id: 97, piece: "a" }] });
    expect((await complete(app, { tokens: [97, 98] }, "/detokenize")).json()).toEqual({
      content: "ab",
      prompt: "ab",
    });
    expect((await complete(app, { tokens: [] }, "/detokenize")).json()).toEqual({
      content: "",
      prompt: "",
    });
  });

  test("the template's prompt", async () => {
    const { app } = createWorld();
    const messages = [
      { role: "system", content: "S" },
      { role: "user", content: "Hi" },
    ];
    const body = (await complete(app, { messages }, "/apply-template")).json();
    expect(body).toEqual({ prompt: "[system]S[user]Hi" });
  });

  test.each([
    ["/tokenize", {}, "content"],
    ["/tokenize", { content: 5 }, "content"],
    ["/tokenize", { content: "a", with_pieces: 1 }, "with_pieces"],
    ["/detokenize", {}, "tokens"],
    ["/detokenize", { tokens: [500] }, "tokens[0]"],
    ["/detokenize", { tokens: "a" }, "tokens"],
    ["/apply-template", {}, "messages"],
    ["/apply-template", { messages: [{ role: "user" }] }, "messages[0].content"],
  ])("%s %j names %s", async (url, body, param) => {
    const response = await complete(createWorld().app, body, url);
    expect(response.statusCode).toBe(400);
    expect(response.json().error.param).toBe(param);
  });
});

test("times between tokens come from the engine", async () => {
  const { app, tokenInterval } = createWorld();
  tokenInterval(20);
  tokenInterval(40);
  const { body } = await app.inject("/metrics");
  expect(body).toContain("fermata_inter_token_seconds_count 2");
  expect(body).toContain("fermata_inter_token_seconds_sum 0.06");
});
