/** What llama-server and vLLM call constraints, held by the model that ships. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

let server: ScriptedServer;
const messages = [{ role: "user", content: "Hello! What can you do?" }];

beforeAll(async () => {
  server = await startScriptedServer({ engine: { parallel: 2, threads: 1, deterministic: true } });
});
afterAll(async () => server.close());

async function post(path: string, body: object): Promise<Response> {
  return fetch(`${server.url}${path}`, { method: "POST", body: JSON.stringify(body) });
}

interface Said {
  text: string;
  reason: string;
  tokens: number;
}

async function chat(options: object): Promise<Said> {
  const response = await post("/v1/chat/completions", {
    messages,
    tool_choice: "none",
    temperature: 0,
    ...options,
  });
  expect(response.status).toBe(200);
  const { choices, usage } = (await response.json()) as {
    choices: { message: { content: string }; finish_reason: string }[];
    usage: { completion_tokens: number };
  };
  const { message, finish_reason: reason } = choices[0]!;
  return { text: message.content, reason, tokens: usage.completion_tokens };
}

async function complete(options: object): Promise<Said> {
  const template = await post("/apply-template", { messages });
  const { prompt } = (await template.json()) as { prompt: string };
  const body = { prompt, temperature: 0, ...options };
  const response = await post("/v1/completions", body);
  expect(response.status).toBe(200);
  const { choices, usage } = (await response.json()) as {
    choices: { text: string; finish_reason: string }[];
    usage: { completion_tokens: number };
  };
  const { text, finish_reason: reason } = choices[0]!;
  return { text, reason, tokens: usage.completion_tokens };
}

const schema = {
  type: "object",
  properties: { a: { enum: [3, 4] } },
  required: ["a"],
  additionalProperties: false,
};

describe.each([
  ["chat", chat],
  ["completions", complete],
])("%s", (_, ask) => {
  test.each([
    [{ grammar: 'root ::= "a"{5,5}' }, /^aaaaa$/],
    [{ json_schema: schema }, /^\{\s*"a"\s*:\s*[34]\s*\}$/],
    [{ response_format: { type: "json_object", schema } }, /^\{\s*"a"\s*:\s*[34]\s*\}$/],
    [{ structured_outputs: { regex: "[xy]{3}" } }, /^[xy]{3}$/],
    [{ structured_outputs: { choice: ["north", "south"] } }, /^(north|south)$/],
  ])("%j", async (form, wanted) => {
    expect((await ask({ ...form, max_tokens: 64 })).text).toMatch(wanted);
  });

  test("ignore_eos goes on to the limit", async () => {
    const free = await ask({ max_tokens: 300 });
    expect(free).toMatchObject({ reason: "stop" });
    const on = await ask({ max_tokens: 300, ignore_eos: true });
    expect(on).toMatchObject({ reason: "length", tokens: 300 });
    expect(on.text.startsWith(free.text)).toBe(true);
  });

  test("a banned text is not said", async () => {
    const { text } = await ask({ max_tokens: 24 });
    const word = / [a-z]{3,}/.exec(text)![0];
    const banned = await ask({ max_tokens: 24, logit_bias: [[word, false]] });
    expect(banned.text).not.toBe(text);
    const other = await ask({ max_tokens: 24, logit_bias: { [word]: -100 } });
    expect(other).toEqual(banned);
  });

  test("a grammar that is none is refused", async () => {
    const body = { messages, prompt: "A", grammar: "root ::= this is (not GBNF" };
    const path = ask === chat ? "/v1/chat/completions" : "/v1/completions";
    const response = await post(path, body);
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { param: string } };
    expect(error.param).toBe("grammar");
  });
});

describe("a schema that JSON Schema does not allow is the client's mistake, strict or not", () => {
  const inside = (value: object): object => ({ type: "object", properties: { a: value } });
  test.each([
    [{ type: "hiccup" }, '#/properties/a the keyword "type"'],
    [{ type: 123 }, '#/properties/a the keyword "type"'],
    [{ type: "string", minLength: "2" }, '#/properties/a the keyword "minLength"'],
    [{ type: "object", required: true }, '#/properties/a the keyword "required"'],
    [{ anyOf: { type: "string" } }, '#/properties/a the keyword "anyOf"'],
  ])("%j", async (value, place) => {
    const schema = inside(value);
    const named = { name: "x", strict: true, schema };
    const format = { type: "json_schema", name: "x", schema };
    const nested = { type: "json_schema", json_schema: named };
    const bodies: [path: string, field: string, body: object][] = [
      ["/v1/chat/completions", "response_format.schema", { messages, response_format: format }],
      [
        "/v1/chat/completions",
        "response_format.json_schema.schema",
        { messages, response_format: nested },
      ],
      ["/v1/responses", "text.format.schema", { input: "Hi", text: { format } }],
      [
        "/v1/messages",
        "output_config.format.schema",
        { messages, max_tokens: 8, output_config: { format } },
      ],
      ["/v1/completions", "json_schema", { prompt: "A", json_schema: schema }],
      ["/api/chat", "format", { messages, format: schema }],
    ];
    for (const [path, field, body] of bodies) {
      const response = await post(path, body);
      const told = JSON.stringify(await response.json());
      expect([path, response.status]).toEqual([path, 400]);
      expect(told).toContain(JSON.stringify(`At ${place}`).slice(1, -1));
      expect(told).toContain(`"param":"${field}"`);
    }
  });

  test("a tool may have such a schema: what it says is passed over", async () => {
    const parameters = inside({ type: "str" });
    const tools = [{ type: "function", function: { name: "look", parameters } }];
    const response = await post("/v1/chat/completions", { messages, tools, max_tokens: 4 });
    expect(response.status).toBe(200);
  });
});
