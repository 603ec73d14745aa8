/** How a text that repeats itself is noticed, and what is said of answers that are stopped for it. */

interface Words {
  /** For the client. */
  notice: string;
  /** In the log. */
  warning: string;
}

export const repeatedText: Words = {
  notice: "The answer was stopped: it repeated itself.",
  warning: "the answer repeats itself: stopped",
};

export const repeatedCall: Words = {
  notice: "A round of tool calls was stopped where the same call came for the third time.",
  warning: "the same call comes for the third time in a round: the round is stopped",
};

const maxPeriod = 64;
const minTokens = 320;
const minCopies = 16;

/**
 * Notices a model that writes the same tokens over and over, as small models do when they are greedy. A pattern
 * of up to 64 tokens counts when its copies fill 320 tokens and there are at least 16 of them: tables with equal
 * rows, rulers and short lists of zeros stay below, and nobody reads on beyond.
 */
export class RepetitionDetector {
  /** The last `maxPeriod` tokens, in a ring. */
  readonly #last = new Int32Array(maxPeriod).fill(-1);
  /** By period: how many of the last tokens equal the one that many before. */
  readonly #runs = new Int32Array(maxPeriod + 1);
  #count = 0;

  /** @returns whether the tokens so far end in a pattern that repeats */
  add(token: number): boolean {
    let repeats = false;
    for (let period = 1; period <= maxPeriod; period++) {
      const before = this.#last[(this.#count - period + maxPeriod) % maxPeriod];
      const run = before === token ? this.#runs[period]! + 1 : 0;
      this.#runs[period] = run;
      if (run + period >= Math.max(minTokens, minCopies * period)) repeats = true;
    }
    this.#last[this.#count % maxPeriod] = token;
    this.#count += 1;
    return repeats;
  }
}
