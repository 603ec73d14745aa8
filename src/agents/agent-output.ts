/** What a sub-agent says, as it comes, and the result that its caller reads of it. */

import type { ToolResult } from "../tools/types.ts";

const betweenRounds = "\n\n";

/** Every part that was told is at its place in the result: parts are a prefix of it. */
export class AgentOutput {
  readonly #tell: (text: string) => void;
  readonly #citations = new Set<string>();
  #text = "";
  #roundEnded = false;

  constructor(tell: (text: string) => void) {
    this.#tell = tell;
  }

  get isEmpty(): boolean {
    return this.#text === "";
  }

  add(text: string): void {
    if (text === "") return;
    const part = this.#roundEnded && this.#text !== "" ? `${betweenRounds}${text}` : text;
    this.#roundEnded = false;
    this.#text += part;
    this.#tell(part);
  }

  endRound(): void {
    this.#roundEnded = true;
  }

  cite(citations: readonly string[]): void {
    for (const citation of citations) this.#citations.add(citation);
  }

  /** @param note why there is no more of it */
  result(isError: boolean, note: string | null = null): ToolResult {
    const citations = [...this.#citations];
    if (note === null) return { content: this.#text, isError, citations };
    const content = this.#text === "" ? `Error: ${note}` : `${this.#text}${betweenRounds}[${note}]`;
    return { content, isError: isError || this.#text === "", citations };
  }
}
