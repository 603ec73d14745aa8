/** A generation that ends at a line. */

import type { Generation, GenerationEvent } from "../../engine/types.ts";
import type { LineLimits } from "../body/line-limits.ts";

/** The generation's events. At a limit it is cancelled, and ends as one that reached its limit of tokens. */
export function withinLines(
  generation: Generation,
  limits: LineLimits,
): AsyncIterable<GenerationEvent> {
  const hasLimit = limits.indent > 0 || limits.milliseconds > 0;
  return hasLimit ? cut(generation, new LineReader(limits)) : generation;
}

async function* cut(
  generation: Generation,
  lines: LineReader,
): AsyncGenerator<GenerationEvent, void, void> {
  let drawn = 0;
  for await (const event of generation) {
    if (event.type === "finish") {
      yield lines.areOver ? atLimit(event, drawn) : event;
    } else if (event.type !== "text") {
      yield event;
    } else if (!lines.areOver) {
      drawn += event.tokens.length;
      const text = lines.read(event.text);
      if (lines.areOver) generation.cancel();
      yield { ...event, text };
    }
  }
}

type Finish = Extract<GenerationEvent, { type: "finish" }>;

/** @param drawn tokens: the engine may have drawn more before it was cancelled */
function atLimit({ type, usage }: Finish, drawn: number): Finish {
  return { type, reason: "length", stopString: "", usage: { ...usage, generatedTokens: drawn } };
}

class LineReader {
  readonly #limits: LineLimits;
  #startedAt: number | null = null;
  /** Spaces and tabs of the line so far; null: it is the first one, or has other characters. */
  #indent: number | null = null;
  #areOver = false;

  constructor(limits: LineLimits) {
    this.#limits = limits;
  }

  get areOver(): boolean {
    return this.#areOver;
  }

  /** @returns what of the text is within the limits */
  read(text: string): string {
    return this.#indented(this.#timely(text));
  }

  #timely(text: string): string {
    const { milliseconds } = this.#limits;
    const now = performance.now();
    this.#startedAt ??= now;
    if (milliseconds <= 0 || now - this.#startedAt <= milliseconds) return text;
    const end = text.indexOf("\n") + 1;
    if (end === 0) return text;
    this.#areOver = true;
    return text.slice(0, end);
  }

  #indented(text: string): string {
    const { indent } = this.#limits;
    if (indent <= 0) return text;
    for (let at = 0; at < text.length; at += 1) {
      const character = text[at]!;
      const isBlank = character === " " || character === "\t";
      if (this.#indent !== null && isBlank) this.#indent += 1;
      else if (this.#indent !== null && this.#indent < indent) {
        this.#areOver = true;
        return text.slice(0, at);
      } else this.#indent = character === "\n" ? 0 : null;
    }
    return text;
  }
}
