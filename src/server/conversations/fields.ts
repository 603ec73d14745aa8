/** Bodies and queries of /api/conversations as checked data. */

import {
  nullable,
  optional,
  readBody,
  type FieldTable,
  type Type,
  type ValuesOf,
} from "../body/field.ts";
import { responseFormat } from "../body/guidance.ts";
import { readLimit } from "../body/stored.ts";
import { list, text } from "../body/values.ts";
import type { Warn } from "../body/warnings.ts";

/** What a conversation's runs do unless they say otherwise. */
export interface ConversationSettings {
  /** Null: the loaded model. */
  model: string | null;
  /** Names of the tools that are offered; null: all. */
  tools: string[] | null;
  instructions: string | null;
  /** As it was sent; it is checked. */
  responseFormat: unknown;
}

/** What is undefined stays as it is. */
export interface ConversationPatch {
  title?: string | undefined;
  leafId?: string | undefined;
  settings: Partial<ConversationSettings>;
}

const maxTitleLength = 200;
const maxTools = 512;
const showTitle = 'Send {"title": …}';

const sentFormat: Type<unknown> = {
  ...responseFormat,
  read(value, path, reading) {
    responseFormat.read(value, path, reading);
    return value;
  },
};

/** Null is a value; what is left out stays as it is. */
export const settingsFields = {
  model: nullable(text(), "the model's name or an agent's"),
  tools: nullable(
    list(text(), {
      max: maxTools,
      remedy: "Send an array of tool names, or null for all tools",
    }),
    "names of tools; null: all that there are",
  ),
  response_format: nullable(sentFormat, "as chat completions have it"),
} satisfies FieldTable;

export const conversationFields = {
  title: optional(text({ max: maxTitleLength })),
  ...settingsFields,
  instructions: nullable(text()),
} satisfies FieldTable;

export const conversationPatchFields = {
  ...conversationFields,
  leaf_id: optional(text(), "the last answer of the branch that is shown"),
} satisfies FieldTable;

/** An absent body is an empty one. @throws FermataError of status 400 */
export function parseNewConversation(body: unknown, warn: Warn): ConversationPatch {
  const given = readBody(conversationFields, body ?? {}, { warn }, showTitle);
  return { title: given.title, settings: settingsOf(given) };
}

/** @throws FermataError of status 400 */
export function parseConversationPatch(body: unknown, warn: Warn): ConversationPatch {
  const given = readBody(conversationPatchFields, body, { warn }, showTitle);
  return { title: given.title, leafId: given.leaf_id, settings: settingsOf(given) };
}

/** Those that are there. */
export function settingsOf(
  given: Partial<ValuesOf<typeof conversationFields>>,
): Partial<ConversationSettings> {
  const { model, tools, instructions, response_format: format } = given;
  return {
    ...(model === undefined ? {} : { model }),
    ...(tools === undefined ? {} : { tools }),
    ...(instructions === undefined ? {} : { instructions }),
    ...(format === undefined ? {} : { responseFormat: format }),
  };
}

/** @throws FermataError invalid_value */
export function readConversationPage({ limit, before }: Record<string, unknown>): {
  limit: number;
  before: string | null;
} {
  return { limit: readLimit(limit), before: typeof before === "string" ? before : null };
}
