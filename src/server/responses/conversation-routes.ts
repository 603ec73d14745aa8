/** Every endpoint below /v1/conversations: a conversation is read, relabelled, deleted, its items one by one. */

import type { FastifyRequest, RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import type { OpenStore, StoredConversation } from "../../store/types.ts";
import { newId } from "../answer/ids.ts";
import { needStore, pageOf, readPageQuery } from "../body/stored.ts";
import { readBody } from "../body/field.ts";
import type { OnceWarnings } from "../body/warnings.ts";
import { requestOwner } from "../http/access.ts";
import { conversationLabelFields, newConversationFields, newItemsFields } from "./fields.ts";

const showLabels = 'Send {"metadata": …}';

interface Asked {
  store: OpenStore;
  owner: string;
  request: FastifyRequest;
  /** Of the conversation and the item, where the path has them. */
  id: string;
  itemId: string;
}

export function conversationRoutes(
  kept: OpenStore | null,
  { warn }: OnceWarnings,
  replica?: string,
): RouteOptions[] {
  const route = (
    method: "GET" | "POST" | "DELETE",
    path: string,
    answer: (asked: Asked) => Promise<unknown>,
  ): RouteOptions => ({
    method,
    url: `/v1/conversations${path}`,
    handler: async (request) => {
      const store = needStore(kept, "conversation");
      const { id = "", item = "" } = request.params as { id?: string; item?: string };
      return await answer({ store, owner: requestOwner(request), request, id, itemId: item });
    },
  });
  return [
    route("POST", "", async ({ store, owner, request }) => {
      // An absent body is an empty one.
      const given = readBody(newConversationFields, request.body ?? {}, { warn }, showLabels);
      const { metadata, items } = given;
      const createdAt = Math.floor(Date.now() / 1000);
      const conversation = { id: newId("conv", replica), createdAt, metadata };
      await store.conversations.create(owner, conversation);
      if (items.length > 0) await store.conversations.add(owner, conversation.id, items);
      return wireConversation(conversation);
    }),
    route("GET", "/:id", async (asked) => wireConversation(await find(asked))),
    route("POST", "/:id", async (asked) => {
      const { store, owner, request, id } = asked;
      const given = readBody(conversationLabelFields, request.body, { warn }, showLabels);
      await store.conversations.setMetadata(owner, id, given.metadata);
      return wireConversation(await find(asked));
    }),
    // Its items go with it, but for those that responses refer to.
    route("DELETE", "/:id", async ({ store, owner, id }) => {
      if (!(await store.conversations.delete(owner, id))) throw noConversation(id);
      return { id, object: "conversation.deleted", deleted: true };
    }),
    route("GET", "/:id/items", async (asked) => {
      const page = readPageQuery(asked.request.query as Record<string, unknown>);
      return pageOf(await itemsOf(asked), page);
    }),
    route("POST", "/:id/items", async (asked) => {
      const show = 'Send {"items": […]}';
      const { items } = readBody(newItemsFields, asked.request.body, { warn }, show);
      await find(asked);
      const added = await asked.store.conversations.add(asked.owner, asked.id, items);
      return pageOf(added, { after: null, limit: added.length, order: "asc" });
    }),
    route("GET", "/:id/items/:item", async (asked) => {
      const item = (await itemsOf(asked)).find(({ id }) => id === asked.itemId);
      if (item === undefined) throw noItem();
      return item;
    }),
    route("DELETE", "/:id/items/:item", async (asked) => {
      const { store, owner, id, itemId } = asked;
      const conversation = await find(asked);
      if (!(await store.conversations.deleteItem(owner, id, itemId))) throw noItem();
      return wireConversation(conversation);
    }),
  ];
}

/** @throws FermataError not_found */
async function find({ store, owner, id }: Asked): Promise<StoredConversation> {
  const found = await store.conversations.find(owner, id);
  if (found === null) throw noConversation(id);
  return found;
}

async function itemsOf(asked: Asked) {
  await find(asked);
  return (await asked.store.conversations.items(asked.owner, asked.id)) ?? [];
}

function wireConversation({ id, createdAt, metadata }: StoredConversation): object {
  return { id, object: "conversation", created_at: createdAt, metadata };
}

function noConversation(id: string): FermataError {
  const message = `Conversation with id "${id.slice(0, 100)}" not found. It may have been deleted.`;
  return new FermataError("not_found", message, { param: "id" });
}

function noItem(): FermataError {
  return new FermataError("not_found", "The conversation has no such item.", { param: "item" });
}
