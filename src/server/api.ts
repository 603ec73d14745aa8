/** Every endpoint of /api, and the services behind them. */

import type { Route } from "./route.ts";
import type { FastifyInstance } from "fastify";
import type { RouteContext } from "./context.ts";
import { SqliteStore } from "../store/sqlite/sqlite-store.ts";
import { ConversationService } from "./conversations/service.ts";
import { EngineMeter } from "./about/engine-meter.ts";
import type { SealedTokens } from "./http/sealed-tokens.ts";
import { approvalRoutes } from "./conversations/approvals.ts";
import { branchedConversationRoutes } from "./conversations/routes.ts";
import { takeOverLeft } from "./answer/shared-runs.ts";
import { engineRoute, engineStreamRoute } from "./about/engine.ts";
import { closeSessionRoute, openSessionRoute, streamTokensRoute } from "./session/routes.ts";
import { answerOfNobody } from "./answer/traces.ts";
import { traceRoutes } from "./about/traces.ts";
import { toolsRoute } from "./about/tools.ts";

/** Of conversations that are kept in memory. The oldest ones go first. */
const memoryLimits = { maxBytes: 256 * 1024 ** 2 };

export function apiRoutes(
  app: FastifyInstance,
  context: RouteContext,
  tokens: SealedTokens,
): Route[] {
  const { services, config } = context;
  const branches = services.branches ?? new SqliteStore(null, { limits: memoryLimits }).branches;
  const shared = services.store?.shared ?? null;
  const { replica } = config;
  const conversations = new ConversationService(branches, services.model.id, { replica, shared });
  const answer = answerOfNobody("/api/conversations/:id/runs");
  takeOverLeft(app, {
    shared,
    take: () => conversations.adopt({ ...context, answer, log: app.log, startedAt: 0 }),
    cancel: (id, reason) => conversations.cancelHere(id, reason),
  });
  const all = { ...context, conversations };
  const meter = new EngineMeter(services);
  return [
    ...branchedConversationRoutes(all),
    toolsRoute(services, config),
    ...approvalRoutes(context),
    engineRoute(meter),
    engineStreamRoute(meter, context),
    ...traceRoutes(context.traces),
    openSessionRoute(tokens),
    closeSessionRoute(),
    streamTokensRoute(tokens),
  ];
}
