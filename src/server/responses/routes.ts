import type { FastifyInstance, RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import type { RouteContext } from "../context.ts";
import { sendError, toFermataError } from "../http/errors.ts";
import { compactResponseRoute } from "./compact-route.ts";
import {
  addItemsRoute,
  deleteItemRoute,
  listItemsRoute,
  retrieveItemRoute,
} from "./conversation-item-routes.ts";
import {
  createConversationRoute,
  deleteConversationRoute,
  retrieveConversationRoute,
  updateConversationRoute,
} from "./conversation-routes.ts";
import { createResponseRoute } from "./create-route.ts";
import { inputTokensRoute } from "./input-tokens-route.ts";
import { ResponseService } from "./response-service.ts";
import { retrieveResponseRoute } from "./retrieve-route.ts";
import {
  cancelResponseRoute,
  deleteResponseRoute,
  inputItemsRoute,
  toolOutputsRoute,
} from "./stored-routes.ts";

/** Responses that still run when the server closes are ended, and kept as far as they came. */
export function responsesRoutes(app: FastifyInstance, context: RouteContext): RouteOptions[] {
  const responses = new ResponseService(context.services.store, context);
  app.addHook("preClose", async () => {
    await responses.live.cancel(
      responses.live.where(() => true),
      new FermataError("engine_closed", "The server is shutting down. Try again later."),
    );
  });
  const all = { ...context, responses };
  const routes = [
    createResponseRoute(all, "/v1/responses"),
    createResponseRoute(all, "/codex/responses"),
    inputTokensRoute(all),
    retrieveResponseRoute(all),
    deleteResponseRoute(all),
    cancelResponseRoute(all),
    inputItemsRoute(all),
    toolOutputsRoute(all),
    compactResponseRoute(all),
    createConversationRoute(all),
    retrieveConversationRoute(all),
    updateConversationRoute(all),
    deleteConversationRoute(all),
    listItemsRoute(all),
    addItemsRoute(all),
    retrieveItemRoute(all),
    deleteItemRoute(all),
  ];
  return routes.map((route) => ({
    ...route,
    errorHandler: (error, request, reply) => sendError(ofInput(error), request, reply),
  }));
}

/** What the chat layer says of its messages is said of the field that they come from. */
function ofInput(thrown: unknown): FermataError {
  const error = toFermataError(thrown);
  if (error.param !== "messages") return error;
  return new FermataError(error.code, error.message, { param: "input", cause: error.cause });
}
