/** /openapi.json tells of every route, and what it tells is true. */

import { Ajv2020 } from "ajv/dist/2020.js";
import { afterEach, expect, test } from "vitest";
import { messageParameters } from "../../src/server/messages/fields.ts";
import { chatCompletionParameters } from "../../src/server/chat-completions/fields.ts";
import type { ParameterTable } from "../../src/server/body/parameter.ts";
import { responseParameters } from "../../src/server/responses/fields.ts";
import type { OpenApiDocument } from "../../src/server/openapi/document.ts";
import { operations } from "../../src/server/openapi/operations.ts";
import { chatTypes, messageTypes, responseTypes } from "../../src/server/openapi/schemas.ts";
import { createResponsesWorld, type ResponsesWorld } from "./responses-world.ts";

let world: ResponsesWorld;
afterEach(() => world.close());

interface Body {
  schema: object;
  example?: object;
}

interface WireOperation {
  summary: string;
  requestBody?: { content: { "application/json": Body } };
  responses: Record<string, { content?: Record<string, { schema?: object }> }>;
}

async function document(): Promise<OpenApiDocument> {
  world = createResponsesWorld();
  return (await world.app.inject({ url: "/openapi.json" })).json();
}

function operationsOf({ paths }: OpenApiDocument): [name: string, operation: WireOperation][] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): [string, WireOperation] => [
      `${method.toUpperCase()} ${path}`,
      operation as WireOperation,
    ]),
  );
}

function bodies(all: OpenApiDocument): [path: string, body: Body][] {
  return operationsOf(all).flatMap(([name, { requestBody }]) => {
    const body = requestBody?.content["application/json"];
    return body === undefined ? [] : [[name.split(" ")[1]!, body] as [string, Body]];
  });
}

test("every route is in it and described, and nothing that is no route", async () => {
  const all = await document();
  const { paths } = all;
  const told = operationsOf(all);
  const routes = told.map(([name]) => name);
  expect(routes.toSorted()).toEqual(Object.keys(operations).toSorted());
  expect(
    told.filter(([, { summary }]) => !/^[A-Z].*\.$/.test(summary)).map(([name]) => name),
  ).toEqual([]);
  for (const [path, methods] of Object.entries(paths)) {
    // Whatever it does not tell of is refused.
    const other = await world.app.inject({ method: "PUT", url: path });
    expect(other.headers["allow"]?.toString().toLowerCase().split(", ").toSorted()).toEqual(
      Object.keys(methods).toSorted(),
    );
  }
  expect(paths).toHaveProperty(["/v1/chat/completions", "post"]);
  expect(paths).toHaveProperty(["/openapi.json", "get"]);
});

test("every answer has a schema", async () => {
  const told = operationsOf(await document());
  const untold = told.filter(([, { responses }]) =>
    Object.entries(responses).some(
      ([status, { content = {} }]) =>
        status !== "204" && content["application/json"]?.schema === undefined,
    ),
  );
  expect(untold.map(([name]) => name)).toEqual([
    "GET /api/conversations/{id}/stream",
    "GET /api/engine/stream",
    "GET /metrics",
  ]);
  const ajv = new Ajv2020({ strict: true, strictTypes: false });
  for (const [, { responses }] of told)
    for (const { content = {} } of Object.values(responses))
      for (const { schema = {} } of Object.values(content))
        if (!("$ref" in schema)) ajv.compile(schema);
});

test("its schemas are schemas, and its examples valid and answered", async () => {
  const ajv = new Ajv2020({ strict: true, strictTypes: false });
  const all = bodies(await document());
  expect(all.length).toBeGreaterThan(8);
  for (const [path, { schema, example }] of all) {
    const validate = ajv.compile(schema);
    if (example === undefined) continue;
    expect(validate(example), `${path}: ${JSON.stringify(validate.errors)}`).toBe(true);
    const { status, body } = await world.call("POST", path, example);
    expect([200, 201], `${path}: ${JSON.stringify(body)}`).toContain(status);
  }
});

test.each<[string, ParameterTable, Record<string, object>]>([
  ["chat completions", chatCompletionParameters, chatTypes],
  ["responses", responseParameters, responseTypes],
  ["messages", messageParameters, messageTypes],
])("%s: each honoured field has a type", async (_name, table, types) => {
  await document();
  const honoured = Object.keys(table).filter((name) => table[name]!.effect === "honoured");
  expect(honoured.filter((name) => !(name in types))).toEqual([]);
});
