/** Where a text that is read a character at a time stands: on a new line, in code, behind a quotation mark. */

import { isBlank } from "../formats/readers/json-scanner.ts";

const QUOTES = "`'\"";
/** Before a mark that opens a quotation. Behind anything else it closes one. */
const BEFORE_QUOTATION = "([{<=:,";
/** Fewer open no block. */
const FENCE_LENGTH = 3;

/** Ticks or tildes in a row. */
interface Run {
  mark: string;
  length: number;
  /** Nothing but blanks before it on its line. */
  isFirst: boolean;
}

export class MarkdownPlace {
  #lineIsBlank = true;
  /** What opened the block. */
  #fence: Run | null = null;
  /** Behind the fence that opened the block, on its line. */
  #inInfo = false;
  /** The line has the block's closing fence, and no more so far. */
  #isClosing = false;
  /** How many ticks opened the code within the line; 0: none did. */
  #span = 0;
  /** That the text ends with. */
  #run: Run | null = null;
  #last = "\n";
  #beforeLast = "\n";

  /** Nothing but blanks on this line so far. */
  get lineIsBlank(): boolean {
    return this.#lineIsBlank;
  }

  get inCode(): boolean {
    if (this.#fence !== null) return !this.#isClosing && !this.#closes(this.#run);
    const ticks = this.#run?.mark === "`" ? this.#run.length : 0;
    return this.#span === 0 ? ticks > 0 : ticks !== this.#span;
  }

  /** What comes next is spoken of, not said. */
  get isSpokenOf(): boolean {
    const isOpening = isBlank(this.#beforeLast) || BEFORE_QUOTATION.includes(this.#beforeLast);
    return this.inCode || (isOpening && QUOTES.includes(this.#last));
  }

  feed(text: string): void {
    for (const character of text) this.#feed(character);
  }

  #feed(character: string): void {
    this.#beforeLast = this.#last;
    this.#last = character;
    if (character === "`" || character === "~") return this.#feedMark(character);
    this.#endRun();
    if (character === "\n") {
      if (this.#isClosing) this.#fence = null;
      this.#isClosing = this.#inInfo = false;
      this.#span = 0;
      this.#lineIsBlank = true;
    } else if (!isBlank(character)) this.#isClosing = this.#lineIsBlank = false;
  }

  #feedMark(mark: string): void {
    if (this.#run?.mark === mark) {
      this.#run.length += 1;
      return;
    }
    this.#endRun();
    this.#isClosing = false;
    // An opening fence has no ticks behind it.
    if (this.#inInfo && mark === "`" && this.#fence?.mark === "`") {
      this.#span = this.#fence.length;
      this.#fence = null;
      this.#inInfo = false;
    }
    this.#run = { mark, length: 1, isFirst: this.#lineIsBlank };
    this.#lineIsBlank = false;
  }

  #endRun(): void {
    const run = this.#run;
    if (run === null) return;
    this.#run = null;
    if (this.#fence !== null) this.#isClosing = this.#closes(run);
    else if (run.isFirst && run.length >= FENCE_LENGTH) {
      this.#fence = run;
      this.#inInfo = true;
    } else if (run.mark === "`" && this.#span === 0) this.#span = run.length;
    else if (run.mark === "`" && this.#span === run.length) this.#span = 0;
  }

  #closes(run: Run | null): boolean {
    const fence = this.#fence;
    if (run === null || fence === null) return false;
    return run.isFirst && run.mark === fence.mark && run.length >= fence.length;
  }
}
