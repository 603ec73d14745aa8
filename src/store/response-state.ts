/** What becomes of a response whose process is gone, in every store. */

import { readable } from "./rows.ts";
import type { StoredItem } from "./types.ts";

const interrupted = {
  code: "server_error",
  message: "The server ended before the response was finished.",
};

export function isAtWork({ status }: Record<string, unknown>): boolean {
  return status === "queued" || status === "in_progress";
}

/** Of JSON text; any other text stays as it is. */
export function failedBody(body: string): string {
  const response = readable(() => JSON.parse(body) as Record<string, unknown>);
  if (response === undefined) return body;
  return JSON.stringify({ ...response, status: "failed", error: interrupted });
}

/** A call that waited for its output keeps its status. The next turn closes it. */
export function incomplete(item: StoredItem): StoredItem {
  const isCall = item.type === "function_call" || item.type === "custom_tool_call";
  if (item["status"] !== "in_progress" || isCall) return item;
  return { ...item, status: "incomplete" };
}
