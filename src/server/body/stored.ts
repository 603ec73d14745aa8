/** Stored things: the pages of a list, their labels, and the error when there is no store. */

import { FermataError } from "../../errors.ts";
import { optional, type Schema, fieldError } from "./field.ts";
import { dictionary, text } from "./values.ts";
import type { OpenStore } from "../../store/types.ts";

export interface PageQuery {
  after: string | null;
  limit: number;
  order: "asc" | "desc";
}

interface Page<Item> {
  object: "list";
  data: Item[];
  first_id: string | null;
  last_id: string | null;
  has_more: boolean;
}

const maxLimit = 100;

/** Of an address, for /openapi.json. */
export const pageQuery: Record<string, Schema> = {
  after: { type: "string" },
  limit: { type: "integer", minimum: 1, maximum: maxLimit },
  order: { type: "string", enum: ["asc", "desc"] },
};

/** @throws FermataError invalid_value */
export function readLimit(limit: unknown = "20"): number {
  const count = /^\d{1,3}$/.test(String(limit)) ? Number(limit) : 0;
  if (count >= 1 && count <= maxLimit) return count;
  throw fieldError("invalid_value", "limit", "is out of range", `Send 1 to ${maxLimit}`);
}

export function readPageQuery(query: Record<string, unknown>): PageQuery {
  const { after, limit, order = "desc" } = query;
  if (order !== "asc" && order !== "desc")
    throw fieldError("invalid_value", "order", "is not a known order", 'Send "asc" or "desc"');
  if (after !== undefined && typeof after !== "string")
    throw fieldError("invalid_type", "after", "must be a single id", "Send a last_id");
  return { after: after ?? null, limit: readLimit(limit), order };
}

/** @param items the oldest first */
export function pageOf<Item extends { id: string }>(
  items: readonly Item[],
  { after, limit, order }: PageQuery,
): Page<Item> {
  const ordered = order === "asc" ? items : items.toReversed();
  const start = after === null ? 0 : ordered.findIndex(({ id }) => id === after) + 1;
  if (after !== null && start === 0)
    throw fieldError("invalid_value", "after", "names no item of the list", "Send a last_id");
  const data = ordered.slice(start, start + limit);
  return {
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: start + limit < ordered.length,
  };
}

const maxEntries = 16;
const maxName = 64;
const label = text({ max: 512 });

export const metadata = dictionary(label, {
  max: maxEntries,
  maxName,
  remedy: `Send up to ${maxEntries} strings with names of up to ${maxName} characters`,
});

export const metadataField = optional(metadata, `up to ${maxEntries} strings`, {});

/** @throws FermataError unsupported_value: the server keeps nothing */
export function needStore(store: OpenStore | null, field: string): OpenStore {
  if (store !== null) return store;
  throw fieldError(
    "unsupported_value",
    field,
    "needs a store, and this server was started without one",
    "Send the whole history as input, or start the server with --store",
  );
}

export function noResponse(id: string): FermataError {
  const message = `Response with id "${id.slice(0, 100)}" not found. It may have been deleted, or was not stored.`;
  return new FermataError("not_found", message, { param: "id" });
}
