/** Adds up the counts of the generations that one answer took. */

import type { EngineUsage } from "../engine/types.ts";

/** Of an answer that has not begun. */
export const noUsage: Readonly<EngineUsage> = {
  promptTokens: 0,
  cachedTokens: 0,
  resumedTokens: 0,
  prefilledTokens: 0,
  recomputedTokens: 0,
  generatedTokens: 0,
};

export class UsageSum {
  #ended = noUsage;
  #current = noUsage;
  #hidesPrompt = false;

  get total(): EngineUsage {
    const current = this.#hidesPrompt
      ? { ...this.#current, promptTokens: 0, cachedTokens: 0 }
      : this.#current;
    return {
      promptTokens: this.#ended.promptTokens + current.promptTokens,
      cachedTokens: this.#ended.cachedTokens + current.cachedTokens,
      resumedTokens: this.#ended.resumedTokens + current.resumedTokens,
      prefilledTokens: this.#ended.prefilledTokens + current.prefilledTokens,
      recomputedTokens: this.#ended.recomputedTokens + current.recomputedTokens,
      generatedTokens: this.#ended.generatedTokens + current.generatedTokens,
    };
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
