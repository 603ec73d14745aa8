/** One route: its address, what /openapi.json says of it, and what answers it. */

import type { FastifyRequest, RouteOptions } from "fastify";
import type { FieldTable, Schema } from "./body/field.ts";

type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** One that /openapi.json does not tell of. */
export interface BareRoute extends Omit<RouteOptions, "method" | "url"> {
  /** `GET /v1/models/:model` */
  at: `${Method} /${string}`;
}

export interface Route extends BareRoute {
  summary: string;
  /** Fields of the request's body. None: no body is read. */
  request?: FieldTable;
  /** A request that succeeds. */
  example?: object;
  /** Of the path's query, all optional. */
  query?: Record<string, Schema>;
  /** Of a success. Default 200. */
  status?: 101 | 200 | 201 | 202 | 204;
  /** Body of a success that is not streamed; null: not JSON, or none. */
  answer: Schema | null;
  /** May answer with server-sent events. Those that no other server's documentation has stand here, by type; those without one as `message`. */
  streams?: true | Record<string, Schema>;
  /** May answer with lines of JSON, each of them as the body of an answer that is not streamed. */
  lines?: true;
  /** What needs no model is answered before one is waited for. Undefined: the request needs one. See `modelRoutes`. */
  withoutModel?: (request: FastifyRequest) => Promise<object | undefined>;
}

/** What is said of a route, without its address and what answers it. */
export type Told = Omit<Route, "at" | "handler">;

export function addressOf({ at }: BareRoute): { method: Method; url: string } {
  const [method, url] = at.split(" ") as [Method, string];
  return { method, url };
}
