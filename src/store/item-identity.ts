/** What makes two items the same, in every store. */

import { createHash, randomBytes } from "node:crypto";
import type { StoredItem } from "./types.ts";

export function freshId(id: string): string {
  return `${id.split("_", 1)[0]}_${randomBytes(24).toString("hex")}`;
}

/** A client may send any text. Databases give back no other than well-formed ones, and Postgres keeps no U+0000. */
export function storableId(id: string): string {
  return Buffer.from(id).toString().replaceAll("\0", "\uFFFD");
}

/** Equal for items with the same content, whatever their ids and the fields that clients left out. */
export function itemDigest(item: StoredItem): string {
  return createHash("sha256")
    .update(JSON.stringify(meaningOf(item)))
    .digest("base64url");
}

function meaningOf(item: StoredItem): unknown {
  switch (item.type) {
    case "message":
      return [item.type, item["role"], textsOf(item["content"])];
    case "reasoning":
      return [item.type, textsOf(item["content"]), item["encrypted_content"] ?? null];
    case "function_call":
      return [item.type, item["call_id"], item["name"], item["namespace"], item["arguments"]];
    case "custom_tool_call":
      return [item.type, item["call_id"], item["name"], item["namespace"], item["input"]];
    case "custom_tool_call_output":
    case "function_call_output":
      return [item.type, item["call_id"], item["output"]];
    default: {
      const { id: _id, status: _status, ...rest } = item;
      return Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1));
    }
  }
}

function textsOf(content: unknown): unknown {
  if (!Array.isArray(content)) return content ?? null;
  return content.map((part: { type?: unknown; text?: unknown }) => [part.type, part.text]);
}
