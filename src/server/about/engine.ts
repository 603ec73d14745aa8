/** GET /api/engine, and the same as a stream: what the engine is at. */

import type { Route } from "../route.ts";
import { answer, real, string, whole } from "../body/shapes.ts";
import { setTimeout } from "node:timers/promises";
import type { RouteContext } from "../context.ts";
import type { EngineMeter } from "./engine-meter.ts";
import { sseTimes } from "../http/stream-answer.ts";
import { SseStream } from "../http/sse.ts";

export function engineRoute(meter: EngineMeter): Route {
  return {
    at: "GET /api/engine",
    summary: "Sequences, cells and rates of the engine.",
    answer: answer({
      model: answer({ id: string, context_size: whole }),
      sequences: answer({ running: whole, waiting: whole, held: whole }),
      kv_cells: answer({ used: whole, retained: whole, free: whole }),
      kv_ram: answer({ sequences: whole, used: whole, limit: whole }),
      kv_disk: answer({ sequences: whole, used: whole, limit: whole }),
      tokens_per_second: real,
      prefilled_tokens: whole,
      new_tokens: whole,
      re_prefill_ratio: real,
    }),
    config: { scope: "admin" },
    logLevel: "warn",
    handler: async () => meter.read(),
  };
}

const periodMs = 500;

/** Twice a second, until the client leaves. */
export function engineStreamRoute(meter: EngineMeter, { config, active }: RouteContext): Route {
  return {
    at: "GET /api/engine/stream",
    summary: "The same as a stream, twice a second.",
    query: { token: string },
    streams: true,
    answer: null,
    exposeHeadRoute: false,
    config: { takesStreamToken: true, scope: "admin" },
    logLevel: "warn",
    handler: async (_request, reply) => {
      const gone = new AbortController();
      reply.raw.once("close", () => gone.abort());
      const signal = AbortSignal.any([gone.signal, active.closing]);
      const sse = new SseStream(reply, { ...sseTimes(config), isResumable: true });
      while (!signal.aborted) {
        await sse.send({ data: JSON.stringify(meter.read()) });
        await setTimeout(periodMs, undefined, { signal }).catch(() => {});
      }
      sse.end();
      return reply;
    },
  };
}
