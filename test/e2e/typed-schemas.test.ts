/** Schemas as Pydantic and Zod write them: taken as strict, and every answer that ends is valid. */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileValidator } from "../../src/guidance/validator.ts";
import { type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

let server: ScriptedServer;

beforeAll(async () => {
  server = await startScriptedServer({ engine: { parallel: 2, threads: 1, deterministic: true } });
});
afterAll(async () => server.close());

const text = (format: string, more: object = {}): object => ({ type: "string", format, ...more });
const branch = (status: string, more: object): object => ({
  type: "object",
  properties: { status: { const: status, default: status, type: "string" }, ...more },
  required: Object.keys(more),
});
const zodUuid =
  "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000)$";
const zodEmail =
  "^(?:[A-Za-z0-9_'+\\-]+\\.)*[A-Za-z0-9_'+\\-]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$";
const zodTime =
  "^\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))T(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?Z$";

const fields = {
  "pydantic, UUID4": text("uuid4"),
  "pydantic, IPvAnyAddress": text("ipvanyaddress"),
  "pydantic, date": text("date"),
  "pydantic, a pattern with named groups": {
    type: "string",
    pattern: "^(?P<year>\\d{4})-(?P<month>0[1-9]|1[0-2])$",
  },
  "pydantic, Decimal": {
    anyOf: [
      { type: "number", maximum: 1000 },
      { type: "string", pattern: "^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$" },
    ],
  },
  "pydantic, a 64-bit integer": { type: "integer", minimum: -(2 ** 63), maximum: 2 ** 63 },
  "pydantic, a union with a discriminator": {
    discriminator: { propertyName: "status" },
    oneOf: [
      branch("ok", { data: { type: "object", additionalProperties: { type: "integer" } } }),
      branch("error", { code: { type: "integer" } }),
    ],
  },
  "zod, uuid": text("uuid", { pattern: zodUuid }),
  "zod, email": text("email", { pattern: zodEmail }),
  "zod, datetime": text("date-time", { pattern: zodTime }),
  "zod, email of 4.0": text("email", {
    pattern:
      "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
  }),
  "zod, float32": { type: "number", minimum: -3.4028234663852886e38, maximum: 3.4e38 },
};

interface Completion {
  choices: [{ message: { content: string }; finish_reason: string }];
}

describe.each(Object.entries(fields))("%s", (_, field) => {
  const schema = {
    type: "object",
    properties: { field },
    required: ["field"],
    additionalProperties: false,
  };

  test.each([1, 2, 3])("seed %i", async (seed) => {
    const body = {
      messages: [{ role: "user", content: "Make one up." }],
      response_format: { type: "json_schema", json_schema: { name: "a", schema, strict: true } },
      temperature: 1,
      seed,
      max_tokens: 400,
    };
    const path = `${server.url}/v1/chat/completions`;
    const response = await fetch(path, { method: "POST", body: JSON.stringify(body) });
    expect(response.status, await response.clone().text()).toBe(200);
    const { choices } = (await response.json()) as Completion;
    const [{ message, finish_reason: reason }] = choices;
    if (reason !== "stop") return;
    const answer = JSON.parse(message.content);
    expect(compileValidator(schema)(answer)).toBeNull();
    if ("discriminator" in field) expect(answer.field).toHaveProperty("status");
  });
});
