import type { ChatUsage } from "../../chat/types.ts";

export interface WireUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number; cache_write_tokens: number };
  completion_tokens_details: { reasoning_tokens: number };
}

/**
 * Over all rounds. Prompt tokens are those the model read and did not write: the prompt and, in
 * internal mode, the tool results, each once. Cached ones were found in the KV cache, the others are in it now.
 */
export function wireUsage(usage: ChatUsage): WireUsage {
  const promptTokens = usage.promptTokens + usage.resumedTokens;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: usage.generatedTokens,
    total_tokens: promptTokens + usage.generatedTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cachedTokens,
      cache_write_tokens: Math.max(0, promptTokens - usage.cachedTokens),
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
  };
}

/** Of one prompt's choices, the first of which is first: the prompt counts once. */
export function usageOfChoices(usages: readonly [ChatUsage, ...ChatUsage[]]): ChatUsage {
  const sum = (count: (usage: ChatUsage) => number): number =>
    usages.reduce((total, usage) => total + count(usage), 0);
  return {
    ...usages[0],
    generatedTokens: sum((usage) => usage.generatedTokens),
    reasoningTokens: sum((usage) => usage.reasoningTokens ?? 0),
  };
}
