/**
 * Requests made from the OpenAPI document, most of them a little wrong, and what every answer to them
 * must be: a refusal names the field at fault, anything else is what the document says, key by key.
 */

import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect } from "vitest";
import type { OpenApiDocument } from "../../src/server/http/openapi.ts";
import { nearly } from "./schema-arbitrary.ts";

type Schema = { [key: string]: unknown };
type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** Never ends by itself. */
const endless = "/api/engine/stream";

interface Parameter {
  name: string;
  in: "path" | "query";
  schema: Schema;
}

export interface FuzzedOperation {
  method: Method;
  /** With its parameters in braces. */
  path: string;
  parameters: Parameter[];
  body: Schema | null;
  /** Null: the answer is not JSON. */
  isAnswer: ValidateFunction | null;
}

export interface FuzzReply {
  status: number;
  type: string;
  body: string;
}

// oxlint-disable-next-line typescript/no-explicit-any -- an answer of any kind
type Thing = any;

export interface FuzzTarget {
  /** A path without its braces filled: of something that exists, so that requests come further than to a 404. */
  existing(operation: FuzzedOperation): Promise<Record<string, string>>;
  send(method: Method, url: string, body: string | undefined): Promise<FuzzReply>;
  /** Makes of a body what the test has time for. */
  tame?(body: unknown): unknown;
}

export function fuzzedOperations({ paths }: OpenApiDocument): FuzzedOperation[] {
  const ajv = new Ajv2020({ strict: false });
  const ending = Object.entries(paths).filter(([path]) => path !== endless);
  return ending.flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]): FuzzedOperation[] => {
      const { parameters, requestBody, responses } = operation as {
        parameters?: Parameter[];
        requestBody?: { content: { "application/json": { schema: Schema; example?: object } } };
        responses: Record<string, { content?: Record<string, { schema?: Schema }> }>;
      };
      // A WebSocket: no request by itself is answered.
      if ("101" in responses) return [];
      const answer = Object.entries(responses).find(([status]) => status !== "default")?.[1];
      const schema = answer?.content?.["application/json"]?.schema;
      return [
        {
          method: method.toUpperCase() as Method,
          path,
          parameters: parameters ?? [],
          body: requestBody === undefined ? null : bodyOf(requestBody.content["application/json"]),
          isAnswer: schema === undefined ? null : ajv.compile(closed(schema) as Schema),
        },
      ];
    }),
  );
}

/** What the example has is there most of the time, so that requests come further than to a missing field. */
function bodyOf({ schema, example = {} }: { schema: Schema; example?: object }): Schema {
  const required = (schema["required"] ?? []) as string[];
  return { ...schema, required: [...new Set([...required, ...Object.keys(example)])] };
}

/** The document lets keys through that it does not name, for later versions; a test does not. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== "object" || value === null) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, part]) => [key, closed(part)]));
  return copy["type"] === "object" && "properties" in copy && !("additionalProperties" in copy)
    ? { ...copy, additionalProperties: false }
    : copy;
}

const ids = fc.oneof(
  fc.constantFrom("resp_0", "default", "..%2f", "\u0000", "🌊", "null", "0"),
  fc.string({ minLength: 1, maxLength: 12 }),
);

interface Request {
  /** By name; null: of something that exists. */
  path: Record<string, string | null>;
  query: Record<string, unknown>;
  /** Undefined: none. */
  body: unknown;
  /** The body's text is cut here. */
  cutAt: number | null;
}

/** Clients resolve these two: they name another endpoint. */
const segments = ids.filter((id) => id !== "." && id !== "..");

function requestsOf({ parameters, body }: FuzzedOperation): fc.Arbitrary<Request> {
  const of = (place: string): Parameter[] => parameters.filter((one) => one.in === place);
  const path = Object.fromEntries(
    of("path").map(({ name }) => [
      name,
      fc.oneof({ weight: 12, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: segments }),
    ]),
  );
  const query = Object.fromEntries(
    of("query").map(({ name, schema }) => [name, fc.option(nearly(schema, 0.1), { freq: 2 })]),
  );
  return fc.record({
    path: fc.record(path) as fc.Arbitrary<Request["path"]>,
    query: fc.record(query),
    body: body === null ? fc.constant(undefined) : nearly(body),
    cutAt: fc.oneof(
      { weight: 99, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.nat(60) },
    ),
  });
}

/** What most paths name, made by requests. @param limited makes of a request's body what the test has time for */
export async function existingThing(
  path: string,
  call: (method: "GET" | "POST", path: string, body?: object) => Promise<Thing>,
  limited: (body: object, limit: "max_tokens" | "max_output_tokens") => object = (body) => body,
): Promise<Record<string, string>> {
  if (path.includes("{model}")) return { model: "default" };
  if (path.startsWith("/api/conversations")) {
    const { id } = await call("POST", "/api/conversations", {});
    if (path.endsWith("/runs")) return { id };
    const run = limited({ message: "Hi" }, "max_tokens");
    const { run_id } = await call("POST", `/api/conversations/${id}/runs`, run);
    return { id, run_id };
  }
  if (path.startsWith("/v1/conversations")) {
    const items = [{ role: "user", content: "Hi" }];
    const { id } = await call("POST", "/v1/conversations", { items });
    const { data } = await call("GET", `/v1/conversations/${id}/items`);
    return { id, item: data[0].id };
  }
  if (path.startsWith("/v1/chat/completions")) {
    const chat = { messages: [{ role: "user", content: "Hi" }], store: true };
    return { id: (await call("POST", "/v1/chat/completions", limited(chat, "max_tokens"))).id };
  }
  // Only a background response can be cancelled or read as a stream.
  const response = { input: "Hi", background: !path.endsWith("tool_outputs") };
  return { id: (await call("POST", "/v1/responses", limited(response, "max_output_tokens"))).id };
}

/** @returns how often it was answered and refused */
export async function fuzz(
  operation: FuzzedOperation,
  target: FuzzTarget,
  options: { runs: number; seed: number },
): Promise<{ answered: number; refused: number }> {
  const seen = { answered: 0, refused: 0 };
  const property = fc.asyncProperty(requestsOf(operation), async (request) => {
    const known = operation.path.includes("{") ? await target.existing(operation) : {};
    const url = urlOf(operation.path, request, known);
    const body =
      request.body === undefined ? undefined : (target.tame?.(request.body) ?? request.body);
    const text = body === undefined ? undefined : JSON.stringify(body);
    const sent = request.cutAt === null ? text : text?.slice(0, request.cutAt);
    const reply = await target.send(operation.method, url, sent);
    seen[checkReply(operation, reply)]++;
  });
  await fc.assert(property, {
    numRuns: options.runs,
    seed: options.seed,
    endOnFailure: options.runs > 1000,
  });
  return seen;
}

function urlOf(template: string, { path, query }: Request, known: Record<string, string>): string {
  const filled = template.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(path[name] ?? known[name] ?? "x"),
  );
  const search = Object.entries(query).flatMap(([name, value]) =>
    value === null
      ? []
      : [
          `${name}=${encodeURIComponent(typeof value === "string" ? value : JSON.stringify(value))}`,
        ],
  );
  return search.length === 0 ? filled : `${filled}?${search.join("&")}`;
}

function checkReply(
  { isAnswer }: FuzzedOperation,
  { status, type, body }: FuzzReply,
): "answered" | "refused" {
  if (status >= 200 && status < 300) {
    if (type.startsWith("text/event-stream")) checkStream(body);
    else if (isAnswer !== null)
      for (const text of type === "application/x-ndjson" ? body.trimEnd().split("\n") : [body])
        expect(isAnswer(JSON.parse(text)), `${JSON.stringify(isAnswer.errors)} ${text}`).toBe(true);
    return "answered";
  }
  expect(status, body).toBeGreaterThanOrEqual(400);
  expect(status, body).toBeLessThan(500);
  const { error, param } = JSON.parse(body) as WireError;
  const [message, field] =
    typeof error === "string" ? [error, param] : [error.message, error.param];
  expect(message, body).toMatch(/\S/);
  expect(field, body).toMatch(/\S/);
  return "refused";
}

/** Ollama's, and the others'. */
type WireError =
  | { error: string; param: string | null }
  | { error: { message: string; param: string | null }; param?: undefined };

/** Faults have no status once a stream is open. */
function checkStream(body: string): void {
  for (const line of body.split("\n")) {
    if (!line.startsWith("data: {")) continue;
    expect(() => JSON.parse(line.slice("data: ".length)) as unknown, line).not.toThrow();
    expect(line).not.toMatch(/"code":"(internal_error|decode_failed|engine_crashed)"/);
  }
}
