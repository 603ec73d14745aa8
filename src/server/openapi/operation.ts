/** One route, as /openapi.json tells it. Type-only. */

import type { FieldTable, Schema } from "../body/field.ts";

export interface Operation {
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
  /** May answer with server-sent events. Those that no other server's documentation has stand here, by type. */
  streams?: true | Record<string, Schema>;
  /** May answer with lines of JSON, each of them as the body of an answer that is not streamed. */
  lines?: true;
}
