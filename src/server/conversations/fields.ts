/** Bodies and queries of /api/conversations as checked data. */

import {
  expectBody,
  fieldError,
  isAbsent,
  kindOf,
  readText,
  type JsonObject,
} from "../body/fields.ts";
import { checkParameters, honoured, type ParameterTable } from "../body/parameter.ts";
import { readResponseFormat } from "../body/guidance.ts";
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

export const maxTitleLength = 200;
const maxTools = 512;
const defaultPage = 20;
const maxPage = 100;

export const conversationParameters: ParameterTable = {
  title: honoured(`up to ${maxTitleLength} characters`),
  model: honoured("the model's name or an agent's"),
  tools: honoured("names of tools; null: all that there are"),
  instructions: honoured(),
  response_format: honoured("as chat completions have it"),
};
export const conversationPatchParameters: ParameterTable = {
  ...conversationParameters,
  leaf_id: honoured("the last answer of the branch that is shown"),
};

/** An absent body is an empty one. @throws FermataError of status 400 */
export function parseNewConversation(body: unknown, warn: Warn): ConversationPatch {
  return parse(body ?? {}, conversationParameters, warn);
}

/** @throws FermataError of status 400 */
export function parseConversationPatch(body: unknown, warn: Warn): ConversationPatch {
  return parse(body, conversationPatchParameters, warn);
}

function parse(body: unknown, table: ParameterTable, warn: Warn): ConversationPatch {
  expectBody(body, 'Send {"title": …}');
  checkParameters(table, body, warn);
  const title = readText(body, "title");
  if (title !== null && title.length > maxTitleLength) {
    const problem = `has ${title.length} characters`;
    throw fieldError("invalid_value", "title", problem, `Send at most ${maxTitleLength}`);
  }
  const leafId = "leaf_id" in table ? readText(body, "leaf_id") : null;
  return {
    title: title ?? undefined,
    leafId: leafId ?? undefined,
    settings: readSettings(body),
  };
}

/** Those that are there; null is a value here. */
export function readSettings(body: JsonObject): Partial<ConversationSettings> {
  const settings: Partial<ConversationSettings> = {};
  if (body["model"] !== undefined) settings.model = readText(body, "model");
  if (body["instructions"] !== undefined) settings.instructions = readText(body, "instructions");
  if (body["tools"] !== undefined) settings.tools = readToolNames(body["tools"]);
  if (body["response_format"] !== undefined) {
    const { response_format: format } = body;
    if (!isAbsent(format)) readResponseFormat(format, "response_format");
    settings.responseFormat = format;
  }
  return settings;
}

function readToolNames(value: unknown): string[] | null {
  if (value === null) return null;
  const remedy = "Send an array of tool names, or null for all tools";
  if (!Array.isArray(value))
    throw fieldError("invalid_type", "tools", `must be an array, not ${kindOf(value)}`, remedy);
  if (value.length > maxTools)
    throw fieldError("invalid_value", "tools", `has ${value.length} names`, remedy);
  return value.map((name: unknown, index) => {
    if (typeof name === "string") return name;
    throw fieldError(
      "invalid_type",
      `tools[${index}]`,
      `must be a string, not ${kindOf(name)}`,
      remedy,
    );
  });
}

/** @throws FermataError invalid_value */
export function readConversationPage(query: Record<string, unknown>): {
  limit: number;
  before: string | null;
} {
  const { limit = String(defaultPage), before } = query;
  const count = /^\d{1,3}$/.test(String(limit)) ? Number(limit) : 0;
  if (count < 1 || count > maxPage)
    throw fieldError("invalid_value", "limit", "is out of range", `Send 1 to ${maxPage}`);
  return { limit: count, before: typeof before === "string" ? before : null };
}
