/** GET /openapi.json: the document of all the other routes, and of itself. */

import type { RouteOptions } from "fastify";
import { openApiDocument } from "./document.ts";

export function openApiRoute(routes: readonly RouteOptions[]): RouteOptions {
  const route: RouteOptions = {
    method: "GET",
    url: "/openapi.json",
    logLevel: "warn",
    handler: async () => openApiDocument([...routes, route]),
  };
  return route;
}
