/** Chat completions that were kept with `store`: listed, read, relabelled, deleted. */

import { chatCompletion, chatCompletionExtras } from "./completion.ts";
import type { Route } from "../route.ts";
import {
  answer,
  choice,
  string,
  yes,
  list,
  object,
  nullable,
  metadata,
  pageShape,
} from "../body/shapes.ts";
import type { FastifyRequest } from "fastify";
import { needStore, pageOf, readPageQuery, metadataField, pageQuery } from "../body/stored.ts";
import type { RouteContext } from "../context.ts";
import { readBody } from "../body/field.ts";
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

const storedCompletion = answer({ ...chatCompletion, metadata }, chatCompletionExtras);
export const labelFields = { metadata: metadataField };

export function storedCompletionRoutes({ services, warnings }: RouteContext): Route[] {
  const storedOf = (request: FastifyRequest): StoredCompletions =>
    new StoredCompletions(needStore(services.store, "store"), request.owner);
  return [
    {
      at: "GET /v1/chat/completions",
      summary: "Stored chat completions; `metadata[name]` filters too.",
      query: { ...pageQuery, model: string },
      answer: pageShape(storedCompletion),
      handler: async (request) => {
        const query = request.query as Query;
        const completions = await storedOf(request).all();
        const wanted = completions.filter((completion) => matches(completion, query));
        return pageOf(wanted, readPageQuery({ order: "asc", ...query }));
      },
    },
    {
      at: "GET /v1/chat/completions/:id",
      summary: "A stored chat completion.",
      answer: storedCompletion,
      handler: async (request) => storedOf(request).find(idInPath(request)),
    },
    {
      at: "POST /v1/chat/completions/:id",
      summary: "Replaces a stored chat completion's metadata.",
      request: labelFields,
      answer: storedCompletion,
      handler: async (request) => {
        const reading = { warn: warnings.warn };
        const { metadata } = readBody(labelFields, request.body, reading, 'Send {"metadata": {…}}');
        return storedOf(request).setMetadata(idInPath(request), metadata);
      },
    },
    {
      at: "DELETE /v1/chat/completions/:id",
      summary: "Deletes a stored chat completion.",
      answer: answer({
        id: string,
        object: choice("chat.completion.deleted"),
        deleted: yes,
      }),
      handler: async (request) => {
        const id = idInPath(request);
        await storedOf(request).delete(id);
        return { object: "chat.completion.deleted", id, deleted: true };
      },
    },
    {
      at: "GET /v1/chat/completions/:id/messages",
      summary: "What a stored chat completion was given.",
      query: pageQuery,
      /** As it was sent. */
      answer: pageShape({
        ...answer({ id: string, content: nullable(string), content_parts: nullable(list(object)) }),
        additionalProperties: true,
      }),
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
