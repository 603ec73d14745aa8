/** GET /health: 200 as long as the server takes requests. Needs no key. */

import type { RouteOptions } from "fastify";
import type { ServedModel } from "../services.ts";

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
