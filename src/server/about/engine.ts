/** GET /api/engine: what the engine is at. */

import type { RouteOptions } from "fastify";
import type { EngineMeter } from "./engine-meter.ts";

export function engineRoute(meter: EngineMeter): RouteOptions {
  return {
    method: "GET",
    url: "/api/engine",
    logLevel: "warn",
    handler: async () => meter.read(),
  };
}
