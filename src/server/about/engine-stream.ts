/** GET /api/engine/stream: what the engine is at, twice a second, until the client leaves. */

import { setTimeout } from "node:timers/promises";
import type { FastifyInstance, RouteOptions } from "fastify";
import type { EngineMeter } from "./engine-meter.ts";
import type { ServerConfig } from "../services.ts";
import { sseTimes } from "../http/stream-answer.ts";
import { SseStream } from "../http/sse.ts";

const periodMs = 500;

export function engineStreamRoute(
  app: FastifyInstance,
  meter: EngineMeter,
  config: ServerConfig,
): RouteOptions {
  const closing = new AbortController();
  app.addHook("preClose", async () => closing.abort());
  return {
    method: "GET",
    url: "/api/engine/stream",
    exposeHeadRoute: false,
    config: { takesStreamToken: true },
    logLevel: "warn",
    handler: async (_request, reply) => {
      const gone = new AbortController();
      reply.raw.once("close", () => gone.abort());
      const signal = AbortSignal.any([gone.signal, closing.signal]);
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
