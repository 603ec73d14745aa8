/** Adds up the counts of the generations that one answer took. */

import { noUsage } from "../../engine/generation.ts";
import type { EngineUsage } from "../../engine/types.ts";
import type { ChatUsage } from "../types.ts";

export function addUsage(one: ChatUsage, other: ChatUsage): ChatUsage {
  const reasoningTokens = (one.reasoningTokens ?? 0) + (other.reasoningTokens ?? 0);
  return {
    promptTokens: one.promptTokens + other.promptTokens,
    cachedTokens: one.cachedTokens + other.cachedTokens,
    resumedTokens: one.resumedTokens + other.resumedTokens,
    prefilledTokens: one.prefilledTokens + other.prefilledTokens,
    recomputedTokens: one.recomputedTokens + other.recomputedTokens,
    generatedTokens: one.generatedTokens + other.generatedTokens,
    ...(reasoningTokens === 0 ? {} : { reasoningTokens }),
  };
}

export class UsageSum {
  #ended = noUsage;
  #current = noUsage;
  #hidesPrompt = false;

  get total(): EngineUsage {
    const current = this.#hidesPrompt
      ? { ...this.#current, promptTokens: 0, cachedTokens: 0 }
      : this.#current;
    return addUsage(this.#ended, current);
  }

  /** `usage` of the running generation, over its whole life. */
  update(usage: EngineUsage): void {
    this.#current = usage;
  }

  /** @param hidesPrompt the next generation's prompt is this one's text, which has been counted */
  next(hidesPrompt: boolean): void {
    this.#ended = this.total;
    this.#current = noUsage;
    this.#hidesPrompt = hidesPrompt;
  }
}
