/** Fields that are accepted without effect are said once, in the log. */

/** `key` is the field without indices. */
export type Warn = (key: string, message: string) => void;

/** Keys come from clients: so many are remembered, no more. */
const maxRemembered = 1000;
const maxKeyLength = 80;

export class OnceWarnings {
  readonly #seen = new Set<string>();
  readonly #log: (fields: { field: string }, message: string) => void;

  constructor(log: (fields: { field: string }, message: string) => void) {
    this.#log = log;
  }

  readonly warn: Warn = (key, message) => {
    const field = key.slice(0, maxKeyLength);
    if (this.#seen.has(field) || this.#seen.size >= maxRemembered) return;
    this.#seen.add(field);
    this.#log({ field }, `request field ${field} ${message}`);
  };
}
