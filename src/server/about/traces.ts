/** GET /api/traces and /api/traces/{id}: how answers came about. */

import type { RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import { readLimit } from "../body/stored.ts";
import { requestOwner } from "../http/access.ts";
import { idInPath } from "../http/route-paths.ts";
import type { Traces } from "../answer/traces.ts";

export function traceRoutes(traces: Traces): RouteOptions[] {
  return [
    {
      method: "GET",
      url: "/api/traces",
      config: { scope: "admin" },
      logLevel: "warn",
      handler: async (request) => {
        const { limit } = request.query as Record<string, unknown>;
        return { traces: traces.list(requestOwner(request), readLimit(limit)) };
      },
    },
    {
      method: "GET",
      url: "/api/traces/:id",
      config: { scope: "admin" },
      handler: async (request) => {
        const id = idInPath(request);
        const trace = traces.find(requestOwner(request), id);
        if (trace === null)
          throw new FermataError(
            "not_found",
            `There is no trace of "${id}". The last 64 answers of a key have one; GET /api/traces lists them.`,
            { param: "id" },
          );
        return trace;
      },
    },
  ];
}
