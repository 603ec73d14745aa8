/**
 * The OpenAPI 3.1 document of the routes that this server has.
 *
 * It is written here and not by @fastify/swagger, which takes a schema from each route: Fastify would then compile
 * that schema into its own validation, whose errors do not name the remedy, or a compiler that does nothing would have
 * to be put in its place; and three versions of each path (with `/v1`, without, with a slash) are one operation. What
 * is left to write is these lines: the requests come from the tables of fields.
 */

import type { RouteOptions } from "fastify";
import { documentedPath } from "../http/route-paths.ts";
import { schemaOf, type Schema } from "../body/field.ts";
import { aboutOperations } from "./about.ts";
import { apiOperations } from "./api.ts";
import { generationOperations } from "./generation.ts";
import { ollamaOperations } from "./ollama.ts";
import { responseOperations } from "./responses.ts";
import type { Operation } from "./operation.ts";

/** What is said of each route, by method and path. A route without an entry fails test/contract/openapi.test.ts. */
export const operations: Readonly<Record<string, Operation>> = {
  ...generationOperations,
  ...ollamaOperations,
  ...responseOperations,
  ...apiOperations,
  ...aboutOperations,
};

export interface OpenApiDocument {
  openapi: "3.1.0";
  info: { title: string; version: string };
  security: object[];
  paths: Record<string, Record<string, object>>;
  components: object;
}

const errorNames = { openai: "Error", anthropic: "AnthropicError", ollama: "OllamaError" };

function openApiDocument(
  routes: readonly Pick<RouteOptions, "method" | "url" | "config">[],
): OpenApiDocument {
  const paths: OpenApiDocument["paths"] = {};
  for (const { method, url, config } of routes) {
    const path = documentedPath(url);
    const operation = operations[`${String(method)} ${path}`] ?? { summary: "", answer: null };
    const errorName = errorNames[config?.wire ?? "openai"];
    (paths[path] ??= {})[String(method).toLowerCase()] = wireOperation(path, operation, errorName);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Fermata", version: "1" },
    security: [{}, { bearer: [] }, { header: [] }],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        header: { type: "apiKey", in: "header", name: "x-api-key" },
      },
      schemas: {
        Error: errorSchema,
        AnthropicError: anthropicErrorSchema,
        OllamaError: ollamaErrorSchema,
      },
    },
  };
}

function wireOperation(path: string, operation: Operation, errorName: string): object {
  const { summary, request, example, status = 200 } = operation;
  const parameters = parametersOf(path, operation);
  const schema = request && schemaOf(request);
  const body = { schema, ...(example === undefined ? {} : { example }) };
  return {
    summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(request === undefined
      ? {}
      : { requestBody: { required: true, content: { "application/json": body } } }),
    responses: {
      [status]: success(operation),
      default: {
        description: "What is wrong, the field at fault and what to do.",
        content: {
          "application/json": { schema: { $ref: `#/components/schemas/${errorName}` } },
        },
      },
    },
  };
}

function parametersOf(path: string, { query = {} }: Operation): object[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const inQuery = Object.entries(query).map(([name, schema]) => ({ name, in: "query", schema }));
  return [...inPath, ...inQuery];
}

function success({ answer, streams, lines, status }: Operation): object {
  if (status === 204) return { description: "Done." };
  if (status === 101) return { description: "The connection is a WebSocket." };
  const content = {
    ...(answer === null ? {} : { "application/json": { schema: answer } }),
    ...(streams === undefined ? {} : { "text/event-stream": eventStream(streams) }),
    ...(lines === undefined ? {} : { "application/x-ndjson": { schema: answer } }),
  };
  const isText = Object.keys(content).length === 0;
  return { description: "The answer.", content: isText ? { "text/plain": {} } : content };
}

function eventStream(streams: NonNullable<Operation["streams"]>): object {
  return { schema: { type: "string" }, ...(streams === true ? {} : { "x-events": streams }) };
}

const nullableString: Schema = { type: ["string", "null"] };
const fields = {
  message: { type: "string" },
  type: { type: "string" },
  param: nullableString,
  code: { type: "string" },
};
const counts = { n_prompt_tokens: { type: "integer" }, n_ctx: { type: "integer" } };
const error = {
  type: "object",
  properties: { ...fields, ...counts },
  required: Object.keys(fields),
};
const errorSchema: Schema = { type: "object", properties: { error }, required: ["error"] };
const ollamaErrorSchema: Schema = {
  type: "object",
  properties: { error: fields.message, code: fields.code, param: nullableString },
  required: ["error", "code", "param"],
};
const anthropicErrorSchema: Schema = {
  type: "object",
  properties: { type: { const: "error" }, error, request_id: { type: "string" } },
  required: ["type", "error", "request_id"],
};

/** GET /openapi.json: the document of all the other routes, and of itself. */
export function openApiRoute(routes: readonly RouteOptions[]): RouteOptions {
  const route: RouteOptions = {
    method: "GET",
    url: "/openapi.json",
    logLevel: "warn",
    handler: async () => openApiDocument([...routes, route]),
  };
  return route;
}
