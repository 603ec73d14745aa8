/** What a request says of its answer's form and tokens is honoured under every name, or refused. */

import { describe, expect, test } from "vitest";
import { createWorld, post } from "./fake-services.ts";

const messages = [{ role: "user", content: "Hi" }];
const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };
const gbnf = 'root ::= "a"{5,5}';

/** [what is sent, what the chat layer is asked for] */
const forms: [object, object][] = [
  [{ grammar: gbnf }, { kind: "grammar", text: gbnf, field: "grammar" }],
  [{ json_schema: schema }, { kind: "json_schema", schema, strict: true, field: "json_schema" }],
  [
    { structured_outputs: { json: JSON.stringify(schema) } },
    { kind: "json_schema", schema, strict: true, field: "structured_outputs.json" },
  ],
  [
    { structured_outputs: { regex: "a+", json: null, json_object: false } },
    { kind: "regex", pattern: "a+", field: "structured_outputs.regex" },
  ],
  [{ structured_outputs: { choice: ["a", "b"] } }, { kind: "choice", choices: ["a", "b"] }],
  [
    { structured_outputs: { grammar: gbnf } },
    { kind: "grammar", text: gbnf, field: "structured_outputs.grammar" },
  ],
  [{ structured_outputs: { json_object: true } }, { kind: "json_object" }],
];
const formats: [object, object][] = [
  [
    { response_format: { type: "json_object", schema } },
    { kind: "json_schema", schema, field: "response_format.schema" },
  ],
  [
    { response_format: { type: "json_schema", schema, strict: true } },
    { kind: "json_schema", schema, strict: true, field: "response_format.schema" },
  ],
];
const refused: [object, string][] = [
  [{ structured_outputs: { structural_tag: {} } }, "structured_outputs.structural_tag"],
  [{ structured_outputs: { whitespace_pattern: " " } }, "structured_outputs.whitespace_pattern"],
  [{ structured_outputs: {} }, "structured_outputs"],
  [{ structured_outputs: { regex: "a", choice: ["b"] } }, "structured_outputs"],
  [{ structured_outputs: { choice: [] } }, "structured_outputs.choice"],
  [{ structured_outputs: "json" }, "structured_outputs"],
  [{ grammar: 7 }, "grammar"],
  [{ json_schema: 7 }, "json_schema"],
  [{ grammar: gbnf, json_schema: schema }, "grammar"],
  [{ repetition_penalty: "high" }, "repetition_penalty"],
  [{ repetition_penalty: 1.2, repeat_penalty: 1.1 }, "repetition_penalty"],
  [{ ignore_eos: "yes" }, "ignore_eos"],
  [{ logit_bias: [[1]] }, "logit_bias[0]"],
  [{ logit_bias: [[1, true]] }, "logit_bias[0]"],
  [{ logit_bias: [[500, 1]] }, "logit_bias[0]"],
  [{ logit_bias: [["", 1]] }, "logit_bias[0]"],
  [{ logit_bias: { "-1": 1 } }, "logit_bias.-1"],
  [{ min_tokens: -1 }, "min_tokens"],
  [{ bad_words: ["x", ""] }, "bad_words[1]"],
  [{ stop_token_ids: [2, 500] }, "stop_token_ids[1]"],
  [{ allowed_token_ids: [-1] }, "allowed_token_ids[0]"],
  [{ include_stop_str_in_output: true, no_stop_trim: false }, "no_stop_trim"],
  [{ regex: 7 }, "regex"],
  [{ regex: "a", guided_regex: "b" }, "regex"],
  [{ grammar: { type: "llguidance", value: {} } }, "grammar.type"],
  [{ grammar_lazy: true }, "grammar_lazy"],
];

describe("POST /v1/chat/completions", () => {
  test.each([...forms, ...formats])("%j", async (body, document) => {
    const { app, chat } = createWorld();
    expect((await post(app, { messages, ...body })).statusCode).toBe(200);
    expect(chat.requests[0]?.guidance?.document).toMatchObject(document);
  });

  test.each([
    ...refused,
    [{ response_format: { type: "json_object", schema: 123 } }, "response_format.schema"],
    [{ response_format: { type: "grammar", value: "x" } }, "response_format.type"],
    [{ response_format: { type: "text", schema } }, "response_format.schema"],
    [
      { response_format: { type: "json_schema", schema, json_schema: { schema } } },
      "response_format.schema",
    ],
  ] as [object, string][])("%j is refused", async (body, param) => {
    const { app, chat } = createWorld();
    const response = await post(app, { messages, ...body });
    expect(response.statusCode).toBe(400);
    expect(response.json().error.param).toBe(param);
    expect(chat.requests).toEqual([]);
  });

  test.each([
    [{ max_tokens: -1 }, undefined],
    [{ n_predict: -1 }, undefined],
    [{ n_predict: 7 }, 7],
    [{ n_predict: 7, max_tokens: 5 }, 5],
    [{ max_tokens: 5, max_completion_tokens: -1 }, undefined],
  ])("%j: a limit of %s", async (body, limit) => {
    const { app, chat } = createWorld();
    await post(app, { messages, ...body });
    expect(chat.requests[0]?.maxTokens).toBe(limit);
  });

  test("penalty and end tokens", async () => {
    const { app, chat } = createWorld();
    await post(app, { messages, repetition_penalty: 1.3, ignore_eos: true });
    expect(chat.requests[0]?.sampling).toMatchObject({ repeatPenalty: 1.3, ignoresEnd: true });
  });

  test.each([
    [[[7, -1.5]], [[7, -1.5]], undefined],
    [[[7, false]], [[7, -100]], undefined],
    [[["the", 5]], [], [["the", 5]]],
    [{ "7": false, " the ": -2 }, [[7, -100]], [[" the ", -2]]],
  ])("logit_bias %j", async (logit_bias, tokens, texts) => {
    const { app, chat } = createWorld();
    await post(app, { messages, logit_bias });
    const sampling = chat.requests[0]?.sampling;
    expect([sampling?.logitBias, sampling?.textBias]).toEqual([tokens, texts]);
  });
});

describe("POST /v1/completions", () => {
  const complete = (body: object) => {
    const world = createWorld();
    const payload = { prompt: "A", ...body };
    const response = world.app.inject({ method: "POST", url: "/v1/completions", payload });
    return { ...world, response };
  };

  test("a GBNF grammar goes to the engine as it is", async () => {
    for (const body of [{ grammar: gbnf }, { structured_outputs: { grammar: gbnf } }]) {
      const { response, text } = complete(body);
      expect((await response).statusCode).toBe(200);
      expect(text.grammars).toEqual([{ kind: "gbnf", text: gbnf }]);
      expect(text.requests[0]?.grammar).toBeDefined();
    }
  });

  test.each([
    [{ guided_choice: ["yes", "no"] }, /document: "yes" \| "no"/],
    [{ guided_regex: "[ab]+" }, /document: .*\[a-b\]/],
    [{ json_schema: schema }, /document: .*"integer"/],
    [{ response_format: { type: "json_object" } }, /document: .*"object"/],
  ])("%j becomes a grammar of the whole text", async (body, rule) => {
    const { response, text } = complete(body);
    expect((await response).statusCode).toBe(200);
    expect(text.grammars[0]?.kind).toBe("lark");
    expect(text.grammars[0]?.text).toMatch(rule);
  });

  test("a schema that no mask can hold is refused, whatever its strict says", async () => {
    const repeated = { type: "string", pattern: "^(a|b)\\1$" };
    const format = { name: "x", schema: repeated, strict: false };
    const { response } = complete({
      response_format: { type: "json_schema", json_schema: format },
    });
    expect((await response).statusCode).toBe(400);
    expect((await response).json().error.message).toMatch(/pattern.*Send a schema without it/);
  });

  test("none is asked for", async () => {
    const { response, text } = complete({});
    await response;
    expect(text.requests[0]?.grammar).toBeUndefined();
  });

  test.each(refused)("%j is refused", async (body, param) => {
    const { response, text } = complete(body);
    expect((await response).statusCode).toBe(400);
    expect((await response).json().error.param).toBe(param);
    expect(text.requests).toEqual([]);
  });

  test.each([
    [{}, 16],
    [{ max_tokens: -1 }, undefined],
    [{ n_predict: -1 }, undefined],
    [{ n_predict: 3 }, 3],
  ])("%j: a limit of %s", async (body, limit) => {
    const { response, text } = complete(body);
    await response;
    expect(text.requests[0]?.maxTokens).toBe(limit);
  });

  test("a biased text is biased token by token", async () => {
    const { response, text } = complete({ logit_bias: [["AB", false]] });
    await response;
    expect(text.requests[0]?.sampling).toMatchObject({
      logitBias: [
        [65, -100],
        [66, -100],
      ],
    });
  });
});

describe("POST /v1/responses", () => {
  const respond = (body: object) => {
    const world = createWorld();
    const payload = { input: "Hi", ...body };
    return {
      ...world,
      response: world.app.inject({ method: "POST", url: "/v1/responses", payload }),
    };
  };

  test.each(forms)("%j", async (body, document) => {
    const { response, chat } = respond(body);
    expect((await response).statusCode).toBe(200);
    expect(chat.requests[0]?.guidance?.document).toMatchObject(document);
  });

  test.each([
    ...refused,
    [{ text: { format: { type: "json_object" } }, grammar: gbnf }, "grammar"],
    [{ response_format: { type: "json_object" } }, "response_format"],
  ] as [object, string][])("%j is refused", async (body, param) => {
    const { response } = respond(body);
    expect((await response).statusCode).toBe(400);
    expect((await response).json().error.param).toBe(param);
  });

  test.each([
    [{ max_output_tokens: -1 }, undefined],
    [{ n_predict: 9 }, 9],
    [{ n_predict: -1 }, undefined],
  ])("%j: a limit of %s", async (body, limit) => {
    const { response, chat } = respond(body);
    await response;
    expect(chat.requests[0]?.maxTokens).toBe(limit);
  });
});

test.each([
  { grammar: gbnf },
  { json_schema: schema },
  { structured_outputs: { json: schema } },
  { guided_regex: "a" },
  { response_format: { type: "json_object" } },
  { ignore_eos: true },
  { logit_bias: { "5": 1 } },
  { n_predict: 4 },
])("POST /v1/messages refuses %j", async (body) => {
  const { app, chat } = createWorld();
  const payload = { messages, max_tokens: 5, ...body };
  const response = await app.inject({ method: "POST", url: "/v1/messages", payload });
  expect(response.statusCode).toBe(400);
  expect(response.json().error.param).toBe(Object.keys(body)[0]);
  expect(chat.requests).toEqual([]);
});
