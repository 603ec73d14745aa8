/** What a sub-agent says, as it comes, and the result that its caller reads of it. */

import { RoundText } from "../chat/answer/round-text.ts";
import type { ToolResult } from "../tools/types.ts";

/** Every part that was told is at its place in the result: parts are a prefix of it. */
export class AgentOutput {
  readonly #tell: (text: string) => void;
  readonly #citations = new Set<string>();
  readonly #rounds = new RoundText();
  #text = "";

  constructor(tell: (text: string) => void) {
    this.#tell = tell;
  }

  get isEmpty(): boolean {
    return this.#text === "";
  }

  add(text: string): void {
    const part = this.#rounds.add(text);
    if (part === "") return;
    this.#text += part;
    this.#tell(part);
  }

  endRound(): void {
    this.#rounds.endRound();
  }

  cite(citations: readonly string[]): void {
    for (const citation of citations) this.#citations.add(citation);
  }

  /** @param note why there is no more of it */
  result(isError: boolean, note: string | null = null): ToolResult {
    const citations = [...this.#citations];
    if (note === null) return { content: this.#text, isError, citations };
    const content = this.#text === "" ? `Error: ${note}` : `${this.#text}\n\n[${note}]`;
    return { content, isError: isError || this.#text === "", citations };
  }
}
