import type { RouteOptions } from "fastify";
import { FermataError } from "../../errors.ts";
import { readBody } from "../body/field.ts";
import type { ResponseStore, StoredConversation } from "../../store/types.ts";
import { newId } from "../answer/ids.ts";
import { needStore } from "../answer/need-store.ts";
import { requestOwner } from "../http/authentication.ts";
import type { ResponsesContext } from "./context.ts";
import { conversationLabelFields, newConversationFields } from "./conversation-fields.ts";

const showLabels = 'Send {"metadata": …}';

/** POST /v1/conversations and what one conversation can be asked: read, relabelled, deleted. */
export function createConversationRoute({ responses, warnings }: ResponsesContext): RouteOptions {
  return {
    method: "POST",
    url: "/v1/conversations",
    handler: async (request) => {
      const store = needStore(responses.store, "conversation");
      const reading = { warn: warnings.warn };
      // An absent body is an empty one.
      const given = readBody(newConversationFields, request.body ?? {}, reading, showLabels);
      const { metadata, items } = given;
      const owner = requestOwner(request);
      const createdAt = Math.floor(Date.now() / 1000);
      const conversation = { id: newId("conv"), createdAt, metadata };
      await store.createConversation(owner, conversation);
      if (items.length > 0) await store.addConversationItems(owner, conversation.id, items);
      return wireConversation(conversation);
    },
  };
}

export function retrieveConversationRoute({ responses }: ResponsesContext): RouteOptions {
  return {
    method: "GET",
    url: "/v1/conversations/:id",
    handler: async (request) => {
      const store = needStore(responses.store, "conversation");
      const { id } = request.params as { id: string };
      return wireConversation(await findConversation(store, requestOwner(request), id));
    },
  };
}

export function updateConversationRoute({ responses, warnings }: ResponsesContext): RouteOptions {
  return {
    method: "POST",
    url: "/v1/conversations/:id",
    handler: async (request) => {
      const store = needStore(responses.store, "conversation");
      const { id } = request.params as { id: string };
      const owner = requestOwner(request);
      const reading = { warn: warnings.warn };
      const given = readBody(conversationLabelFields, request.body, reading, showLabels);
      await store.setConversationMetadata(owner, id, given.metadata);
      return wireConversation(await findConversation(store, owner, id));
    },
  };
}

/** Its items go with it, but for those that responses refer to. */
export function deleteConversationRoute({ responses }: ResponsesContext): RouteOptions {
  return {
    method: "DELETE",
    url: "/v1/conversations/:id",
    handler: async (request) => {
      const store = needStore(responses.store, "conversation");
      const { id } = request.params as { id: string };
      if (!(await store.deleteConversation(requestOwner(request), id))) throw noConversation(id);
      return { id, object: "conversation.deleted", deleted: true };
    },
  };
}

/** @throws FermataError not_found */
export async function findConversation(
  store: ResponseStore,
  owner: string,
  id: string,
): Promise<StoredConversation> {
  const found = await store.conversation(owner, id);
  if (found === null) throw noConversation(id);
  return found;
}

export function wireConversation({ id, createdAt, metadata }: StoredConversation): object {
  return { id, object: "conversation", created_at: createdAt, metadata };
}

function noConversation(id: string): FermataError {
  const message = `Conversation with id "${id.slice(0, 100)}" not found. It may have been deleted.`;
  return new FermataError("not_found", message, { param: "id" });
}
