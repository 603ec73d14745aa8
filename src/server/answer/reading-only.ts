/** A limit of 0 tokens: the prompt is read into the cache, and nothing is answered. */

import type { RunEvent } from "../../tools/types.ts";

/** The engine draws a token at least. */
export function engineLimit(maxTokens: number | undefined): number | undefined {
  return maxTokens === 0 ? 1 : maxTokens;
}

/** What is told of an answer that was limited by `engineLimit`; null: nothing. */
export function withinLimit(event: RunEvent, maxTokens: number | undefined): RunEvent | null {
  if (maxTokens !== 0 || event.type === "progress") return event;
  if (event.type !== "finish") return null;
  const usage = { ...event.usage, generatedTokens: 0, reasoningTokens: 0 };
  const reason = event.reason === "cancelled" ? event.reason : "length";
  return { type: "finish", reason, calls: [], usage };
}
