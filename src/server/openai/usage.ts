import type { EngineUsage } from "../../engine/types.ts";

export interface WireUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
}

/**
 * Over all rounds. Prompt tokens are those the model read and did not write: the prompt and, in
 * internal mode, the tool results, each once. Cached ones were found in the KV cache.
 */
export function wireUsage(usage: EngineUsage): WireUsage {
  const promptTokens = usage.promptTokens + usage.resumedTokens;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: usage.generatedTokens,
    total_tokens: promptTokens + usage.generatedTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  };
}
