/** GET /api/engine, and the same as a stream: what the engine is at. */

import { setTimeout } from "node:timers/promises";
import type { RouteOptions } from "fastify";
import type { RouteContext } from "../context.ts";
import type { EngineMeter } from "./engine-meter.ts";
import { sseTimes } from "../http/stream-answer.ts";
import { SseStream } from "../http/sse.ts";

export function engineRoute(meter: EngineMeter): RouteOptions {
  return {
    method: "GET",
    url: "/api/engine",
    config: { scope: "admin" },
    logLevel: "warn",
    handler: async () => meter.read(),
  };
}

const periodMs = 500;

/** Twice a second, until the client leaves. */
export function engineStreamRoute(
  meter: EngineMeter,
  { config, active }: RouteContext,
): RouteOptions {
  return {
    method: "GET",
    url: "/api/engine/stream",
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
