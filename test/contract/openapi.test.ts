/** /openapi.json tells of every route, and what it tells is true. */

import { Ajv2020 } from "ajv/dist/2020.js";
import { afterEach, expect, test } from "vitest";
import type { OpenApiDocument } from "../../src/server/http/openapi.ts";
import { createResponsesWorld, type ResponsesWorld } from "./responses-world.ts";
import { fakeReranker } from "./fake-services.ts";

let world: ResponsesWorld;
afterEach(() => world.close());

interface Schema {
  type?: unknown;
  anyOf?: unknown;
  description?: string;
}

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
  world = await createResponsesWorld({ reranker: fakeReranker });
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
  expect(
    told.filter(([, { summary }]) => !/^[A-Z].*\.$/.test(summary)).map(([name]) => name),
  ).toEqual([]);
  for (const [path, methods] of Object.entries(paths)) {
    // Whatever it does not tell of is refused.
    const other = await world.app.inject({ method: "PUT", url: path });
    const told = Object.keys(methods);
    expect(other.headers["allow"]?.toString().toLowerCase().split(", ").toSorted()).toEqual(
      [...told, ...(told.includes("get") ? ["head"] : [])].toSorted(),
    );
  }
  expect(paths).toHaveProperty(["/v1/chat/completions", "post"]);
  expect(paths).toHaveProperty(["/openapi.json", "get"]);
});

test("HEAD gets the head of what GET gets; where there is no GET it gets what is allowed", async () => {
  const { paths } = await document();
  for (const [path, methods] of Object.entries(paths)) {
    const url = path.replaceAll(/\{\w+\}/g, "absent");
    const head = await world.app.inject({ method: "HEAD", url });
    if (!("get" in methods)) {
      const allow = Object.keys(methods).join(", ").toUpperCase();
      expect([path, head.statusCode, head.headers["allow"]]).toEqual([path, 405, allow]);
    } else if (path === "/api/engine/stream") {
      expect(head.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    } else {
      const got = await world.app.inject({ url });
      const told = (response: typeof got): unknown[] => [
        response.statusCode,
        response.headers["content-type"],
      ];
      expect([path, ...told(head)]).toEqual([path, ...told(got)]);
    }
  }
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
    "GET /v1/responses",
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

test("each field of a request says what it may be", async () => {
  const untyped = bodies(await document()).flatMap(([path, { schema }]) =>
    Object.entries((schema as { properties: Record<string, Schema> }).properties)
      .filter(([, { type, anyOf, description }]) => {
        const isIgnored = description?.startsWith("Without effect: ") === true;
        return !isIgnored && type === undefined && anyOf === undefined;
      })
      .map(([name]) => `${path}: ${name}`),
  );
  expect(untyped).toEqual([]);
});

/** Ranges that a request is checked for are those that it is told. */
test.each([
  ["/v1/chat/completions", "temperature", { type: "number", minimum: 0, maximum: 100 }],
  ["/v1/chat/completions", "n", { type: "integer", minimum: 1, maximum: 128, default: 1 }],
  ["/v1/completions", "dry_base", { type: "number", minimum: 1, maximum: 100, default: 1.75 }],
  ["/v1/responses", "truncation", { enum: ["auto", "disabled"], default: "disabled" }],
  ["/v1/messages", "max_tokens", { type: "integer", minimum: 0 }],
  ["/v1/embeddings", "encoding_format", { enum: ["float", "base64"], default: "float" }],
])("%s: %s has its type, range and default", async (wanted, name, expected) => {
  const [, { schema }] = bodies(await document()).find(([path]) => path === wanted)!;
  expect(schema).toMatchObject({ properties: { [name]: expected } });
});
