/** GET /api/traces and /api/traces/{id}: how answers came about. */

import type { Route } from "../route.ts";
import { answer, list, choice, nullable, real, string, whole } from "../body/shapes.ts";
import { FermataError } from "../../errors.ts";
import { readLimit, pageQuery } from "../body/stored.ts";
import { idInPath } from "../http/route-paths.ts";
import type { Traces } from "../answer/traces.ts";

const traceRows = answer({
  prompt: whole,
  cached: whole,
  resumed: whole,
  prefilled: whole,
  recomputed: whole,
  generated: whole,
});

const trace = answer({
  id: string,
  request_id: string,
  endpoint: string,
  model: string,
  created_at: whole,
  status: choice("running", "complete", "length", "cancelled", "failed"),
  duration_ms: real,
  rows: traceRows,
  sequences: list(
    answer({
      agent: nullable(string),
      spans: list(
        answer(
          {
            phase: choice("prepare", "queued", "prefill", "decode", "hold", "resume"),
            start_ms: real,
            end_ms: nullable(real),
          },
          {
            waits_for: nullable(string),
            behind: nullable(string),
            rows: whole,
            reused: whole,
            source: string,
          },
        ),
      ),
      rows: traceRows,
      end: nullable(string),
    }),
  ),
  calls: list(
    answer({
      id: string,
      tool: string,
      server: string,
      agent: nullable(string),
      start_ms: real,
      end_ms: nullable(real),
      outcome: nullable(string),
      approval_ms: real,
    }),
  ),
  dropped: whole,
});

export function traceRoutes(traces: Traces): Route[] {
  return [
    {
      at: "GET /api/traces",
      summary: "How the last answers of this key came about, the newest first.",
      query: { limit: pageQuery["limit"]! },
      answer: answer({ traces: list(trace) }),
      config: { scope: "admin" },
      logLevel: "warn",
      handler: async (request) => {
        const { limit } = request.query as Record<string, unknown>;
        return { traces: traces.list(request.owner, readLimit(limit)) };
      },
    },
    {
      at: "GET /api/traces/:id",
      summary: "How one answer came about: its phases, its calls, and the rows that were computed.",
      answer: trace,
      config: { scope: "admin" },
      handler: async (request) => {
        const id = idInPath(request);
        const trace = traces.find(request.owner, id);
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
