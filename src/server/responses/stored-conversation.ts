/** Bodies of the conversations' endpoints. */

import { expectBody, fieldError, type JsonObject } from "../body/fields.ts";
import type { Warn } from "../body/warnings.ts";
import { parseItems } from "./items.ts";
import { parseMetadata } from "../body/metadata.ts";
import type { Item } from "./types.ts";

/** As many as OpenAI takes at once. */
const maxItems = 20;

/** An absent body is an empty one. */
export function parseConversation(
  body: unknown,
  warn: Warn,
): { metadata: Record<string, string>; items: Item[] } {
  const given = readBody(body ?? {});
  return {
    metadata: parseMetadata(given["metadata"]),
    items: parseConversationItems(given, warn),
  };
}

export function parseConversationMetadata(body: unknown): Record<string, string> {
  const given = readBody(body);
  if (given["metadata"] === undefined)
    throw fieldError("missing_field", "metadata", "is missing", "Send an object of strings");
  return parseMetadata(given["metadata"]);
}

export function parseNewItems(body: unknown, warn: Warn): Item[] {
  const items = parseConversationItems(readBody(body), warn);
  if (items.length > 0) return items;
  throw fieldError("invalid_value", "items", "has no item", "Send an array of items");
}

function parseConversationItems({ items }: JsonObject, warn: Warn): Item[] {
  if (Array.isArray(items) && items.length > maxItems) {
    const problem = `has ${items.length} items`;
    throw fieldError("invalid_value", "items", problem, `Send at most ${maxItems} at once`);
  }
  if (typeof items === "string")
    throw fieldError("invalid_type", "items", "must be an array, not a string", "Send items");
  const parsed = parseItems(items, "items", warn);
  const index = parsed.findIndex(({ type }) => type === "item_reference");
  if (index < 0) return parsed;
  const field = `items[${index}].type`;
  throw fieldError("unsupported_value", field, "is a reference", "Send the item itself");
}

function readBody(body: unknown): JsonObject {
  expectBody(body, 'Send {"metadata": …}');
  return body;
}
