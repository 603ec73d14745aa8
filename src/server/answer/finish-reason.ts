import type { FinishReason } from "../../chat/types.ts";

export type WireFinishReason = "stop" | "length" | "tool_calls" | "content_filter";

/** A cancelled generation never gets so far: its client is gone or gets an error. */
export function wireFinishReason(reason: FinishReason): WireFinishReason {
  return reason === "cancelled" ? "stop" : reason;
}
