/** Chat completions that were kept with `store`: listed, read, relabelled, deleted. */

import type { FastifyRequest, RouteOptions } from "fastify";
import { needStore, pageOf, readPageQuery, metadataField } from "../body/stored.ts";
import type { RouteContext } from "../context.ts";
import { readBody } from "../body/field.ts";
import { requestOwner } from "../http/access.ts";
import { idInPath } from "../http/route-paths.ts";
import { type StoredCompletion, StoredCompletions } from "./stored-completions.ts";
import type { StoredItem } from "../../store/types.ts";

interface StoredMessage {
  id: string;
  content: unknown;
  content_parts: unknown[] | null;
  [key: string]: unknown;
}

type Query = Record<string, unknown>;

export const labelFields = { metadata: metadataField };

export function storedCompletionRoutes({ services, warnings }: RouteContext): RouteOptions[] {
  const storedOf = (request: FastifyRequest): StoredCompletions =>
    new StoredCompletions(needStore(services.store, "store"), requestOwner(request));
  return [
    {
      method: "GET",
      url: "/v1/chat/completions",
      handler: async (request) => {
        const query = request.query as Query;
        const completions = await storedOf(request).all();
        const wanted = completions.filter((completion) => matches(completion, query));
        return pageOf(wanted, readPageQuery({ order: "asc", ...query }));
      },
    },
    {
      method: "GET",
      url: "/v1/chat/completions/:id",
      handler: async (request) => storedOf(request).find(idInPath(request)),
    },
    {
      method: "POST",
      url: "/v1/chat/completions/:id",
      handler: async (request) => {
        const reading = { warn: warnings.warn };
        const { metadata } = readBody(labelFields, request.body, reading, 'Send {"metadata": {…}}');
        return storedOf(request).setMetadata(idInPath(request), metadata);
      },
    },
    {
      method: "DELETE",
      url: "/v1/chat/completions/:id",
      handler: async (request) => {
        const id = idInPath(request);
        await storedOf(request).delete(id);
        return { object: "chat.completion.deleted", id, deleted: true };
      },
    },
    {
      method: "GET",
      url: "/v1/chat/completions/:id/messages",
      handler: async (request) => {
        const messages = await storedOf(request).messages(idInPath(request));
        const query = readPageQuery({ order: "asc", ...(request.query as Query) });
        return pageOf(messages.map(wireMessage), query);
      },
    },
  ];
}

/** By `model` and by `metadata[name]`, as OpenAI's clients write it. */
function matches({ model, metadata }: StoredCompletion, query: Query): boolean {
  if (query["model"] !== undefined && query["model"] !== model) return false;
  return Object.entries(query).every(([name, value]) => {
    const key = /^metadata\[(.+)\]$/.exec(name)?.[1];
    return key === undefined || (Object.hasOwn(metadata, key) && metadata[key] === value);
  });
}

/** Content is a text, or null with its parts beside it. */
function wireMessage({ type: _type, content, ...message }: StoredItem): StoredMessage {
  const parts = Array.isArray(content) ? content : null;
  const text = parts === null ? (content ?? null) : null;
  return { ...message, id: message.id, content: text, content_parts: parts };
}
