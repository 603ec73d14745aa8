/** Routes that are answered by the model that their request names. */

import type { RouteOptions } from "fastify";
import { closed, lastUsed, withModel } from "./answer/model-use.ts";
import { wantedModel } from "./answer/target.ts";
import type { RouteContext } from "./context.ts";
import { keepAliveOf } from "./body/keep-alive.ts";
import { withoutTag } from "./ollama/models.ts";

/**
 * The routes that `make` makes of a context. Where several models are served, each request gets a context of its own
 * with the one it names in `model`, of the body or of the query.
 */
export function modelRoutes<Context extends RouteContext>(
  context: Context,
  make: (context: Context) => RouteOptions[],
): RouteOptions[] {
  const routes = make(context);
  if (context.services.models === undefined) return routes;
  return routes.map((route, index) => ({
    ...route,
    async handler(request, reply) {
      const named = wantedModel(request.body) ?? wantedModel(request.query);
      const shown = named === null && route.method === "GET" ? lastUsed(context) : null;
      if (shown !== null) return await make(shown)[index]!.handler.call(this, request, reply);
      const isTagged = route.config?.wire === "ollama" && named !== null;
      const options = {
        signal: context.active.signalFor(reply),
        keepAliveMs: keepAliveOf(request.body),
      };
      return await withModel(
        isTagged ? withoutTag(named) : named,
        context,
        options,
        async (own) => {
          own.lease?.until(closed(reply));
          return await make(own)[index]!.handler.call(this, request, reply);
        },
      );
    },
  }));
}
