/** Every endpoint below /v1/conversations: a conversation is read, relabelled, deleted, its items one by one. */

import type { Route, Told } from "../route.ts";
import type { FastifyRequest } from "fastify";
import { answer, choice, metadata, string, whole, yes } from "../body/shapes.ts";
import { itemPage, itemShape } from "./types.ts";
import { FermataError } from "../../errors.ts";
import type { OpenStore, StoredConversation } from "../../store/types.ts";
import { newId } from "../answer/ids.ts";
import { needStore, pageOf, pageQuery, readPageQuery } from "../body/stored.ts";
import { readBody } from "../body/field.ts";
import type { OnceWarnings } from "../body/warnings.ts";
import { conversationLabelFields, newConversationFields, newItemsFields } from "./fields.ts";

const showLabels = 'Send {"metadata": …}';

const conversationShape = answer({
  id: string,
  object: choice("conversation"),
  created_at: whole,
  metadata,
});

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
): Route[] {
  const route = (
    at: Route["at"],
    told: Told,
    answered: (asked: Asked) => Promise<unknown>,
  ): Route => ({
    at,
    ...told,
    handler: async (request) => {
      const store = needStore(kept, "conversation");
      const { id = "", item: itemId = "" } = request.params as { id?: string; item?: string };
      return await answered({ store, owner: request.owner, request, id, itemId });
    },
  });
  return [
    route(
      "POST /v1/conversations",
      {
        summary: "Creates a conversation.",
        request: newConversationFields,
        example: { metadata: { topic: "harbour" } },
        answer: conversationShape,
      },
      async ({ store, owner, request }) => {
        // An absent body is an empty one.
        const given = readBody(newConversationFields, request.body ?? {}, { warn }, showLabels);
        const { metadata: labels, items } = given;
        const createdAt = Math.floor(Date.now() / 1000);
        const conversation = { id: newId("conv", replica), createdAt, metadata: labels };
        await store.conversations.create(owner, conversation);
        if (items.length > 0) await store.conversations.add(owner, conversation.id, items);
        return wireConversation(conversation);
      },
    ),
    route(
      "GET /v1/conversations/:id",
      { summary: "A conversation.", answer: conversationShape },
      async (asked) => wireConversation(await find(asked)),
    ),
    route(
      "POST /v1/conversations/:id",
      {
        summary: "Replaces a conversation's metadata.",
        request: conversationLabelFields,
        answer: conversationShape,
      },
      async (asked) => {
        const { store, owner, request, id } = asked;
        const given = readBody(conversationLabelFields, request.body, { warn }, showLabels);
        await store.conversations.setMetadata(owner, id, given.metadata);
        return wireConversation(await find(asked));
      },
    ),
    // Its items go with it, but for those that responses refer to.
    route(
      "DELETE /v1/conversations/:id",
      {
        summary: "Deletes a conversation.",
        answer: answer({ id: string, object: choice("conversation.deleted"), deleted: yes }),
      },
      async ({ store, owner, id }) => {
        if (!(await store.conversations.delete(owner, id))) throw noConversation(id);
        return { id, object: "conversation.deleted", deleted: true };
      },
    ),
    route(
      "GET /v1/conversations/:id/items",
      { summary: "The items of a conversation.", query: pageQuery, answer: itemPage },
      async (asked) => {
        const page = readPageQuery(asked.request.query as Record<string, unknown>);
        return pageOf(await itemsOf(asked), page);
      },
    ),
    route(
      "POST /v1/conversations/:id/items",
      { summary: "Adds items to a conversation.", request: newItemsFields, answer: itemPage },
      async (asked) => {
        const show = 'Send {"items": […]}';
        const { items } = readBody(newItemsFields, asked.request.body, { warn }, show);
        await find(asked);
        const added = await asked.store.conversations.add(asked.owner, asked.id, items);
        return pageOf(added, { after: null, limit: added.length, order: "asc" });
      },
    ),
    route(
      "GET /v1/conversations/:id/items/:item",
      { summary: "One item.", answer: itemShape },
      async (asked) => {
        const item = (await itemsOf(asked)).find(({ id }) => id === asked.itemId);
        if (item === undefined) throw noItem();
        return item;
      },
    ),
    route(
      "DELETE /v1/conversations/:id/items/:item",
      { summary: "Removes one item.", answer: conversationShape },
      async (asked) => {
        const { store, owner, id, itemId } = asked;
        const conversation = await find(asked);
        if (!(await store.conversations.deleteItem(owner, id, itemId))) throw noItem();
        return wireConversation(conversation);
      },
    ),
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
