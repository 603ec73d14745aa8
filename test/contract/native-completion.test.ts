/** POST /completion, as llama-server has it. */

import { expect, test } from "vitest";
import { FermataError } from "../../src/errors.ts";
import { createWorld, sseEvents, type World } from "./fake-services.ts";

function complete(world: World, body: object) {
  return world.app.inject({ method: "POST", url: "/completion", payload: body });
}

test("an answer has what llama-server's has", async () => {
  const world = createWorld();
  const response = await complete(world, {
    prompt: "abc",
    n_predict: 2,
    seed: 5,
    top_k: 7,
    return_tokens: true,
  });
  expect(response.statusCode).toBe(200);
  expect(response.json()).toMatchObject({
    index: 0,
    content: "ye",
    tokens: [121, 101],
    stop: true,
    model: "tiny",
    tokens_predicted: 2,
    tokens_evaluated: 3,
    generation_settings: {
      n_predict: 2,
      seed: 5,
      top_k: 7,
      logit_bias: [],
      dry_multiplier: 0,
      dry_base: 1.75,
      mirostat_tau: 5,
      n_probs: 0,
      grammar: "",
      lora: [],
    },
    prompt: "abc",
    has_new_line: false,
    truncated: false,
    stop_type: "limit",
    stopping_word: "",
    tokens_cached: 4,
    timings: { predicted_n: 2, cache_n: 12 },
  });
});

test.each([
  [5, true],
  [6, false],
])("in a context of %i tokens, the answer was cut by it: %s", async (contextSize, truncated) => {
  const world = createWorld({ model: { contextSize } });
  const body = { prompt: "abc", n_predict: 2 };
  const whole = (await complete(world, body)).json();
  expect(whole).toMatchObject({ stop_type: "limit", truncated });
  const { body: stream } = await complete(world, { ...body, stream: true });
  expect(sseEvents(stream).at(-1)).toMatchObject({ stop: true, truncated });
});

test("it goes on to the end unless told otherwise", async () => {
  const world = createWorld();
  const body = (await complete(world, { prompt: "abc" })).json();
  expect(body).toMatchObject({ content: "yes", tokens: [], stop_type: "eos" });
  expect(body.generation_settings.n_predict).toBe(-1);
  expect(world.text.requests[0]?.maxTokens).toBeUndefined();
});

test.each([{ n_predict: 0 }, { max_tokens: 0 }, { n_predict: 0, stream: true }])(
  "%j reads the prompt and generates nothing",
  async (options) => {
    const world = createWorld();
    const { body } = await complete(world, { prompt: "abc", ...options });
    const events = "stream" in options ? sseEvents(body) : [JSON.parse(body)];
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      content: "",
      tokens: [],
      stop: true,
      stop_type: "limit",
      tokens_predicted: 0,
      tokens_evaluated: 3,
      generation_settings: { n_predict: 0 },
      timings: { predicted_n: 0 },
    });
    expect(world.text.requests).toHaveLength(1);
  },
);

test("a stream tells pieces, and the last event is the last", async () => {
  const world = createWorld();
  const events = sseEvents((await complete(world, { prompt: "abc", stream: true })).body);
  expect(events).toMatchObject([
    { content: "y", tokens: [121], stop: false, tokens_predicted: 1, tokens_evaluated: 3 },
    { content: "e", tokens: [101], stop: false },
    { content: "s", tokens: [115], stop: false },
    { content: "", tokens: [], stop: true, stop_type: "eos", tokens_predicted: 3 },
  ]);
});

test.each([
  [[1, 2, 3], [[1, 2, 3]]],
  [{ prompt_string: "ab" }, [[97, 98]]],
  [[1, "ab", 2], [[1, 97, 98, 2]]],
  [
    ["a", { prompt_string: "b" }],
    [[97], [98]],
  ],
  [
    [
      [1, 2],
      [3, "a"],
    ],
    [
      [1, 2],
      [3, 97],
    ],
  ],
])("prompt %j", async (prompt, tokens) => {
  const world = createWorld();
  const body = (await complete(world, { prompt })).json();
  expect(world.text.requests.map((request) => [...request.prompt])).toEqual(tokens);
  const isList = tokens.length > 1;
  expect(Array.isArray(body)).toBe(isList);
  if (isList) expect(body.map(({ index }: { index: number }) => index)).toEqual([0, 1]);
});

test("probabilities have ids", async () => {
  const world = createWorld();
  const body = (await complete(world, { prompt: "a", n_probs: 3, n_predict: 1 })).json();
  expect(body.completion_probabilities).toEqual([
    {
      id: 121,
      token: "y",
      bytes: [121],
      logprob: -0.25,
      top_logprobs: [{ id: 121, token: "y", bytes: [121], logprob: -0.25 }],
    },
  ]);
});

test("more alternatives than OpenAI has, and those that the sampler drew by", async () => {
  const world = createWorld();
  const asked = { prompt: "a", n_probs: 300, post_sampling_probs: true, n_predict: 1 };
  const body = (await complete(world, asked)).json();
  const drawn = { id: 121, token: "y", bytes: [121], prob: Math.exp(-0.25) };
  expect(body.completion_probabilities).toEqual([{ ...drawn, top_probs: [drawn] }]);
  expect(body.generation_settings).toMatchObject({ n_probs: 300, post_sampling_probs: true });
  expect(world.text.requests[0]).toMatchObject({ topLogprobs: 300, postSampling: true });
});

test("fields that are asked for, and no others", async () => {
  const response_fields = ["content", "generation_settings/n_predict", "nothing/else"];
  const body = { prompt: "a", n_predict: 2, response_fields };
  expect((await complete(createWorld(), body)).json()).toEqual({
    content: "ye",
    "generation_settings/n_predict": 2,
  });
});

test.each([
  [{}, "prompt"],
  [{ prompt: [] }, "prompt"],
  [{ prompt: { prompt_string: "a", multimodal_data: ["x"] } }, "prompt.multimodal_data"],
  [{ prompt: ["a", 7000] }, "prompt[1][0]"],
  [{ prompt: "a", n_predict: "many" }, "n_predict"],
  [{ prompt: "a", n_probs: 1001 }, "n_probs"],
  [{ prompt: "a", post_sampling_probs: 1 }, "post_sampling_probs"],
  [{ prompt: "a", response_fields: "content" }, "response_fields"],
  [{ prompt: "a", grammar: 7 }, "grammar"],
])("%j is refused", async (body, param) => {
  const world = createWorld();
  const response = await complete(world, body);
  expect(response.statusCode).toBe(400);
  expect(response.json().error.param).toBe(param);
  expect(world.text.requests).toEqual([]);
});

test("several answers to each prompt draw with seeds of their own", async () => {
  const world = createWorld();
  const body = (await complete(world, { prompt: ["a", "b"], n: 2, seed: 7 })).json();
  expect(
    body.map(({ index, prompt }: { index: number; prompt: string }) => [index, prompt]),
  ).toEqual([
    [0, "a"],
    [1, "a"],
    [2, "b"],
    [3, "b"],
  ]);
  expect(world.text.requests.map(({ sampling }) => sampling?.seed)).toEqual([7, 8, 7, 8]);
  expect((await complete(world, { prompt: "a", n: 2 })).json()).toHaveLength(2);
  expect((await complete(world, { prompt: "a", n_cmpl: 2 })).json()).toHaveLength(2);
  const tooMany = await complete(world, { prompt: ["a", "b"], n: 65 });
  expect(tooMany.json().error).toMatchObject({ param: "n", code: "invalid_value" });
});

test("where one prompt of several is refused, the others end with it", async () => {
  const world = createWorld();
  world.text.refusals.set("b", new FermataError("context_length_exceeded", "Too long."));
  const response = await complete(world, { prompt: ["abc", "bcd"] });
  expect([response.statusCode, response.json().error.code]).toEqual([
    400,
    "context_length_exceeded",
  ]);
  const [first] = world.text.requests;
  expect(first?.prompt).toEqual(Int32Array.from([97, 98, 99]));
  expect(first?.signal?.aborted).toBe(true);
});
