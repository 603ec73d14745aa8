/** Bodies that were in flight when a worker died: one of them may have killed it, and would do so again. */

import type { InFlight } from "../../server/http/connection-reports.ts";

/** The oldest are forgotten first. */
const maxSuspects = 10_000;

export class Suspects {
  /** Deaths by body. */
  readonly #crashes = new Map<string, number>();

  add(requests: readonly InFlight[]): void {
    const hashes = new Set(requests.flatMap(({ bodyHash }) => bodyHash ?? []));
    for (const hash of hashes) {
      const count = this.#crashes.get(hash) ?? 0;
      this.#crashes.delete(hash);
      this.#crashes.set(hash, count + 1);
      const [oldest] = this.#crashes.keys();
      if (this.#crashes.size > maxSuspects && oldest !== undefined) this.#crashes.delete(oldest);
    }
  }

  /** A worker has answered it. */
  clear(bodyHash: string): void {
    this.#crashes.delete(bodyHash);
  }

  crashes(): [bodyHash: string, count: number][] {
    return [...this.#crashes];
  }
}
