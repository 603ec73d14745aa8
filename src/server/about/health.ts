/** GET /health: whether the server lives. GET /ready: whether it takes requests now. GET /metrics. */

import type { RouteOptions } from "fastify";
import type { ServerConfig, ServerServices } from "../services.ts";
import type { Metrics } from "../metrics.ts";

const defaultHungStepMs = 600_000;

/** 503 once the inference thread hangs: whoever watches may start the server again. */
export function healthRoute(
  { model, engine }: Pick<ServerServices, "model" | "engine">,
  { hungStepMs = defaultHungStepMs }: Pick<ServerConfig, "hungStepMs">,
): RouteOptions {
  return {
    method: "GET",
    url: "/health",
    // A load balancer asks it.
    config: { public: true },
    logLevel: "warn",
    handler: async (_request, reply) => {
      const { stepAgeMs } = engine.stats();
      const hangs = stepAgeMs > hungStepMs;
      reply.code(hangs ? 503 : 200);
      return { status: hangs ? "hung" : "ok", model: model.id, step_age_ms: stepAgeMs };
    },
  };
}

/** 503 already when a step takes half as long, so that requests go elsewhere; and while the server closes. */
export function readyRoute(
  { engine }: Pick<ServerServices, "engine">,
  { hungStepMs = defaultHungStepMs }: Pick<ServerConfig, "hungStepMs">,
): RouteOptions {
  return {
    method: "GET",
    url: "/ready",
    config: { public: true },
    logLevel: "warn",
    handler: async (_request, reply) => {
      const { stepAgeMs, running, waiting } = engine.stats();
      const isReady = !(stepAgeMs > hungStepMs / 2);
      reply.code(isReady ? 200 : 503);
      return { status: isReady ? "ready" : "busy", step_age_ms: stepAgeMs, running, waiting };
    },
  };
}

/** In Prometheus' text format. */
export function metricsRoute({ registry }: Metrics): RouteOptions {
  return {
    method: "GET",
    url: "/metrics",
    config: { scope: "admin" },
    logLevel: "warn",
    handler: async (_request, reply) =>
      reply.type(registry.contentType).send(await registry.metrics()),
  };
}
