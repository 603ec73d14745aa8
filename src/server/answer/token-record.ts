/** The tokens of one choice, for clients that ask for them. */

import type { TokenLogprobs } from "../../engine/types.ts";

const none = new Int32Array(0);

export class TokenRecord {
  /** Empty until the engine is asked. */
  prompt: Int32Array = none;
  /** Of the prompt's second token and those behind it. */
  readonly promptLogprobs: TokenLogprobs[] = [];
  readonly #generated: number[] = [];
  #taken = 0;

  /** What a request tells it by. */
  readonly listeners = {
    onPrompt: (tokens: Int32Array): void => {
      this.prompt = tokens;
    },
    onPromptLogprobs: (told: readonly TokenLogprobs[]): void => this.addPromptLogprobs(told),
    onTokens: (_count: number, tokens?: Int32Array): void => tokens && this.add(tokens),
  };

  /** The end token is one of them. */
  get generated(): readonly number[] {
    return this.#generated;
  }

  add(tokens: Int32Array): void {
    for (const token of tokens) this.#generated.push(token);
  }

  /** A text that goes on as another prompt tells of its beginning once more. */
  addPromptLogprobs(logprobs: readonly TokenLogprobs[]): void {
    const missing = Math.max(0, this.prompt.length - 1 - this.promptLogprobs.length);
    this.promptLogprobs.push(...logprobs.slice(0, missing));
  }

  /** Those generated since the last call. */
  take(): number[] {
    const tokens = this.#generated.slice(this.#taken);
    this.#taken = this.#generated.length;
    return tokens;
  }
}
