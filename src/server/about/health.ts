/** GET /health: whether the server lives. GET /ready: whether it takes requests now. GET /metrics. */

import type { Route } from "../route.ts";
import { answer, choice, string, whole } from "../body/shapes.ts";
import { engineStates } from "../answer/model-use.ts";
import type { ServerConfig, ServerServices } from "../services.ts";
import type { ActiveRequests } from "../http/requests.ts";
import type { Metrics } from "../metrics.ts";

type Services = Pick<ServerServices, "model" | "engine" | "models" | "agentEngines">;

const defaultHungStepMs = 600_000;

/** Of all engines. */
function stateOf(services: Services): { stepAgeMs: number; running: number; waiting: number } {
  const all = engineStates(services);
  return {
    stepAgeMs: Math.max(0, ...all.map(({ stepAgeMs }) => stepAgeMs)),
    running: all.reduce((sum, stats) => sum + stats.running, 0),
    waiting: all.reduce((sum, stats) => sum + stats.waiting, 0),
  };
}

/** 503 once the inference thread hangs: whoever watches may start the server again. */
export function healthRoute(
  services: Services,
  { hungStepMs = defaultHungStepMs }: Pick<ServerConfig, "hungStepMs">,
): Route {
  return {
    at: "GET /health",
    summary: "Whether the server lives: 503 once the inference thread hangs. Needs no key.",
    answer: answer({ status: choice("ok", "hung"), model: string, step_age_ms: whole }),
    // A load balancer asks it.
    config: { public: true, answersToTheEnd: true },
    logLevel: "warn",
    handler: async (_request, reply) => {
      const { stepAgeMs } = stateOf(services);
      const hangs = stepAgeMs > hungStepMs;
      reply.code(hangs ? 503 : 200);
      return { status: hangs ? "hung" : "ok", model: services.model.id, step_age_ms: stepAgeMs };
    },
  };
}

/** 503 already when a step takes half as long, so that requests go elsewhere; and as soon as the server is to close. */
export function readyRoute(
  services: Services,
  { hungStepMs = defaultHungStepMs }: Pick<ServerConfig, "hungStepMs">,
  active: Pick<ActiveRequests, "isLeaving">,
): Route {
  return {
    at: "GET /ready",
    summary: "Whether requests should be sent here now, else 503. Needs no key.",
    answer: answer({
      status: choice("ready", "busy"),
      step_age_ms: whole,
      running: whole,
      waiting: whole,
    }),
    config: { public: true, answersToTheEnd: true },
    logLevel: "warn",
    handler: async (_request, reply) => {
      const { stepAgeMs, running, waiting } = stateOf(services);
      const isBusy = stepAgeMs > hungStepMs / 2;
      const status = active.isLeaving ? "closing" : isBusy ? "busy" : "ready";
      reply.code(status === "ready" ? 200 : 503);
      return { status, step_age_ms: stepAgeMs, running, waiting };
    },
  };
}

/** In Prometheus' text format. */
export function metricsRoute({ registry }: Metrics): Route {
  return {
    at: "GET /metrics",
    summary: "Prometheus metrics.",
    answer: null,
    config: { scope: "admin", answersToTheEnd: true },
    logLevel: "warn",
    handler: async (_request, reply) =>
      reply.type(registry.contentType).send(await registry.metrics()),
  };
}
