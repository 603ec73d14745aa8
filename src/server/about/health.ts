/** GET /health: 200 as long as the server takes requests. GET /metrics. */

import type { RouteOptions } from "fastify";
import type { ServedModel } from "../services.ts";
import type { Metrics } from "../metrics.ts";

export function healthRoute(model: ServedModel): RouteOptions {
  return {
    method: "GET",
    url: "/health",
    // A load balancer asks it.
    config: { public: true },
    logLevel: "warn",
    handler: async () => ({ status: "ok", model: model.id }),
  };
}

/** In Prometheus' text format. */
export function metricsRoute({ registry }: Metrics): RouteOptions {
  return {
    method: "GET",
    url: "/metrics",
    logLevel: "warn",
    handler: async (_request, reply) =>
      reply.type(registry.contentType).send(await registry.metrics()),
  };
}
