/**
 * Joins what the rounds of one answer say: a blank line stands between two rounds that both have text. The
 * result does not depend on how the text is cut into pieces.
 */

/** Line breaks that make a blank line. */
const blankLine = 2;

export class RoundText {
  #hasText = false;
  /** Line breaks at the end of what was said. */
  #newlines = 0;
  /** What a round began with: blank so far. Null: the text goes on. */
  #lead: string | null = null;

  /** @returns what `text` adds to the answer */
  add(text: string): string {
    const told = this.#lead === null ? text : this.#separated(this.#lead + text);
    if (told.trim() !== "") {
      this.#hasText = true;
      this.#newlines = 0;
    }
    this.#newlines += newlinesIn(told.slice(told.trimEnd().length));
    return told;
  }

  endRound(): void {
    if (this.#hasText) this.#lead ??= "";
  }

  /** Blank text is kept until it is known how much of a blank line it is. */
  #separated(text: string): string {
    const isBlank = text.trim() === "";
    this.#lead = isBlank ? text : null;
    if (isBlank) return "";
    const lead = text.slice(0, text.length - text.trimStart().length);
    const missing = blankLine - this.#newlines - newlinesIn(lead);
    return "\n".repeat(Math.max(0, missing)) + text;
  }
}

function newlinesIn(text: string): number {
  return text.split("\n").length - 1;
}
