import type { RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import { needStore } from "../answer/need-store.ts";
import { readBody } from "../body/field.ts";
import { pageOf, readPageQuery } from "../body/page.ts";
import { requestOwner } from "../http/authentication.ts";
import { findConversation, wireConversation } from "./conversation-routes.ts";
import type { ResponsesContext } from "./context.ts";
import { newItemsFields } from "./conversation-fields.ts";

/** /v1/conversations/{id}/items: read in pages, added to, read and deleted one by one. */
export function listItemsRoute({ responses }: ResponsesContext): RouteOptions {
  return {
    method: "GET",
    url: "/v1/conversations/:id/items",
    handler: async (request) => {
      const store = needStore(responses.store, "conversation");
      const page = readPageQuery(request.query as Record<string, unknown>);
      const { id } = request.params as { id: string };
      const owner = requestOwner(request);
      await findConversation(store, owner, id);
      return pageOf((await store.conversationItems(owner, id)) ?? [], page);
    },
  };
}

export function addItemsRoute({ responses, warnings }: ResponsesContext): RouteOptions {
  return {
    method: "POST",
    url: "/v1/conversations/:id/items",
    handler: async (request) => {
      const store = needStore(responses.store, "conversation");
      const reading = { warn: warnings.warn };
      const { items } = readBody(newItemsFields, request.body, reading, 'Send {"items": […]}');
      const { id } = request.params as { id: string };
      const owner = requestOwner(request);
      await findConversation(store, owner, id);
      const added = await store.addConversationItems(owner, id, items);
      return pageOf(added, { after: null, limit: added.length, order: "asc" });
    },
  };
}

export function retrieveItemRoute({ responses }: ResponsesContext): RouteOptions {
  return {
    method: "GET",
    url: "/v1/conversations/:id/items/:item",
    handler: async (request) => {
      const store = needStore(responses.store, "conversation");
      const { id, item: itemId } = request.params as { id: string; item: string };
      const owner = requestOwner(request);
      await findConversation(store, owner, id);
      const items = (await store.conversationItems(owner, id)) ?? [];
      const item = items.find((candidate) => candidate.id === itemId);
      if (item === undefined) throw noItem();
      return item;
    },
  };
}

export function deleteItemRoute({ responses }: ResponsesContext): RouteOptions {
  return {
    method: "DELETE",
    url: "/v1/conversations/:id/items/:item",
    handler: async (request) => {
      const store = needStore(responses.store, "conversation");
      const { id, item } = request.params as { id: string; item: string };
      const owner = requestOwner(request);
      const conversation = await findConversation(store, owner, id);
      if (!(await store.deleteConversationItem(owner, id, item))) throw noItem();
      return wireConversation(conversation);
    },
  };
}

function noItem(): FermataError {
  return new FermataError("not_found", "The conversation has no such item.", { param: "item" });
}
