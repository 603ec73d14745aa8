import type { ChatUsage } from "../../chat/types.ts";
import type { WireResponseUsage } from "./types.ts";

/** Over all rounds, tool results included; see `wireUsage` of chat completions. */
export function wireResponseUsage(usage: ChatUsage): WireResponseUsage {
  const input = usage.promptTokens + usage.resumedTokens;
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage.cachedTokens,
      cache_write_tokens: Math.max(0, input - usage.cachedTokens),
    },
    output_tokens: usage.generatedTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
    total_tokens: input + usage.generatedTokens,
  };
}
