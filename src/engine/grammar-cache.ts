/** Compiled grammars by content. */

import type { Grammar, GrammarSource } from "./types.ts";

/** Compiled grammars by content, least recently used last; a content is compiled once at a time. */
export class GrammarCache {
  readonly #compile: (source: GrammarSource) => Promise<Grammar>;
  readonly #maxBytes: number;
  // In order of use. A failed compile is not kept.
  readonly #entries = new Map<string, { grammar: Promise<Grammar>; bytes: number }>();
  #bytes = 0;

  constructor(compile: (source: GrammarSource) => Promise<Grammar>, maxBytes: number) {
    this.#compile = compile;
    this.#maxBytes = maxBytes;
  }

  get(source: GrammarSource): Promise<Grammar> {
    const key = `${source.kind} ${source.text}`;
    const known = this.#entries.get(key);
    if (known) {
      this.#entries.delete(key);
      this.#entries.set(key, known);
      return known.grammar;
    }
    const entry = { grammar: this.#compile(source), bytes: 0 };
    this.#entries.set(key, entry);
    entry.grammar.then(
      ({ bytes }) => {
        if (this.#entries.get(key) !== entry) return;
        entry.bytes = bytes;
        this.#bytes += bytes;
        this.#evict();
      },
      () => this.#entries.delete(key),
    );
    return entry.grammar;
  }

  /** The least recently used go first; what is being compiled counts nothing yet and stays. */
  #evict(): void {
    for (const [key, { bytes }] of this.#entries) {
      if (this.#bytes <= this.#maxBytes) return;
      if (bytes === 0) continue;
      this.#entries.delete(key);
      this.#bytes -= bytes;
    }
  }
}
