/** GET /metrics, in Prometheus' text format. */

import type { RouteOptions } from "fastify";
import type { Metrics } from "../metrics.ts";

export function metricsRoute({ registry }: Metrics): RouteOptions {
  return {
    method: "GET",
    url: "/metrics",
    logLevel: "warn",
    handler: async (_request, reply) =>
      reply.type(registry.contentType).send(await registry.metrics()),
  };
}
