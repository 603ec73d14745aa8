/**
 * The OpenAPI 3.1 document of the routes that this server has.
 *
 * It is written here and not by @fastify/swagger, which takes a schema from each route: Fastify would then compile
 * that schema into its own validation, whose errors do not name the remedy, or a compiler that does nothing would have
 * to be put in its place; and three versions of each path (with `/v1`, without, with a slash) are one operation. What
 * is left to write is these lines: the requests come from the tables of fields.
 */

import { addressOf, type Route } from "../route.ts";
import { schemaOf } from "../body/field.ts";
import { answer, choice, nullable, object, string, whole } from "../body/shapes.ts";
import { documentedPath } from "./route-paths.ts";

export interface OpenApiDocument {
  openapi: "3.1.0";
  info: { title: string; version: string };
  security: object[];
  paths: Record<string, Record<string, object>>;
  components: object;
}

function openApiDocument(routes: readonly Route[]): OpenApiDocument {
  const paths: OpenApiDocument["paths"] = {};
  for (const route of routes) {
    const { method, url } = addressOf(route);
    const path = documentedPath(url);
    (paths[path] ??= {})[method.toLowerCase()] = wireOperation(path, route);
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
      schemas: errorSchemas,
    },
  };
}

function wireOperation(path: string, route: Route): object {
  const { summary, request, example, status = 200, config } = route;
  const parameters = parametersOf(path, route);
  const errorName = errorNames[config?.wire ?? "openai"];
  const schema = request && schemaOf(request);
  const body = { schema, ...(example === undefined ? {} : { example }) };
  return {
    summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(request === undefined
      ? {}
      : { requestBody: { required: true, content: { "application/json": body } } }),
    responses: {
      [status]: success(route),
      default: {
        description: "What is wrong, the field at fault and what to do.",
        content: {
          "application/json": { schema: { $ref: `#/components/schemas/${errorName}` } },
        },
      },
    },
  };
}

function parametersOf(path: string, { query = {} }: Route): object[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const inQuery = Object.entries(query).map(([name, schema]) => ({ name, in: "query", schema }));
  return [...inPath, ...inQuery];
}

function success({ answer, streams, lines, status }: Route): object {
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

function eventStream(streams: NonNullable<Route["streams"]>): object {
  return { schema: { type: "string" }, ...(streams === true ? {} : { "x-events": streams }) };
}

const param = nullable(string);
const error = answer(
  { message: string, type: string, param, code: string },
  { n_prompt_tokens: whole, n_ctx: whole },
);
const errorSchemas = {
  Error: answer({ error }),
  AnthropicError: answer({ type: choice("error"), error, request_id: string }),
  OllamaError: answer({ error: string, code: string, param }),
};
const errorNames = { openai: "Error", anthropic: "AnthropicError", ollama: "OllamaError" };

/** GET /openapi.json: the document of all the other routes, and of itself. */
export function openApiRoute(routes: readonly Route[]): Route {
  const route: Route = {
    at: "GET /openapi.json",
    summary: "This document.",
    answer: object,
    logLevel: "warn",
    handler: async () => openApiDocument([...routes, route]),
  };
  return route;
}
