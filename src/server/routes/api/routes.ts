/** Every endpoint of /api, and the services behind them. */

import type { FastifyInstance, RouteOptions } from "fastify";
import { MemoryBranches } from "../../../store/memory/memory-branches.ts";
import { ConversationService } from "../../conversations/conversation-service.ts";
import { EngineMeter } from "../../engine-meter.ts";
import type { SealedTokens } from "../../plugins/sealed-tokens.ts";
import type { RouteContext } from "../chat-completions.ts";
import { approvalRoutes } from "./approvals.ts";
import { cancelRunRoute } from "./cancel-run.ts";
import { changeConversationRoute } from "./change-conversation.ts";
import { conversationStreamRoute } from "./conversation-stream.ts";
import { createConversationRoute } from "./create-conversation.ts";
import { deleteConversationRoute } from "./delete-conversation.ts";
import { engineRoute } from "./engine.ts";
import { engineStreamRoute } from "./engine-stream.ts";
import { getConversationRoute } from "./get-conversation.ts";
import { listConversationsRoute } from "./list-conversations.ts";
import { closeSessionRoute, openSessionRoute } from "./session.ts";
import { startRunRoute } from "./start-run.ts";
import { streamTokensRoute } from "./stream-tokens.ts";
import { toolsRoute } from "./tools.ts";

export function apiRoutes(
  app: FastifyInstance,
  context: RouteContext,
  tokens: SealedTokens,
): RouteOptions[] {
  const { services, config } = context;
  const branches = services.branches ?? new MemoryBranches();
  const all = { ...context, conversations: new ConversationService(branches, services.model.id) };
  const meter = new EngineMeter(services);
  return [
    listConversationsRoute(all),
    createConversationRoute(all),
    getConversationRoute(all),
    changeConversationRoute(all),
    deleteConversationRoute(all),
    startRunRoute(all),
    cancelRunRoute(all),
    conversationStreamRoute(all),
    toolsRoute(services),
    ...approvalRoutes(services),
    engineRoute(meter),
    engineStreamRoute(app, meter, config),
    openSessionRoute(tokens),
    closeSessionRoute(),
    streamTokensRoute(tokens),
  ];
}
