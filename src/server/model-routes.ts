/** Routes that are answered by the model that their request names. */

import type { Route } from "./route.ts";
import { closed, lastUsed, withModel } from "./answer/model-use.ts";
import { wantedModel } from "./answer/target.ts";
import type { RouteContext } from "./context.ts";
import { keepAliveOf } from "./body/keep-alive.ts";

/**
 * The routes that `make` makes of a context. Where several models are served, each request gets a context of its own
 * with the one it names in `model`, of the body or of the query.
 */
export function modelRoutes<Context extends RouteContext>(
  context: Context,
  make: (context: Context) => Route[],
): Route[] {
  const routes = make(context);
  if (context.services.models === undefined) return routes;
  return routes.map(({ withoutModel, ...route }, index) => ({
    ...route,
    async handler(request, reply) {
      const answered = await withoutModel?.(request);
      if (answered !== undefined) return answered;
      const named = wantedModel(request.body) ?? wantedModel(request.query);
      const shown = named === null && route.at.startsWith("GET ") ? lastUsed(context) : null;
      if (shown !== null) return await make(shown)[index]!.handler.call(this, request, reply);
      const options = {
        signal: context.active.signalFor(reply),
        keepAliveMs: keepAliveOf(request.body),
      };
      return await withModel(named, context, options, async (own) => {
        own.lease?.until(closed(reply));
        return await make(own)[index]!.handler.call(this, request, reply);
      });
    },
  }));
}
