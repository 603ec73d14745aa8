/** Bodies that were in flight when a worker died: one of them may have killed it, and would do so again. */

import { RecentMap } from "../../recent-map.ts";
import type { InFlight } from "../../server/http/connection-reports.ts";

/** The oldest are forgotten first. */
const maxSuspects = 10_000;

export class Suspects {
  /** Deaths by body. */
  readonly #crashes = new RecentMap<string, number>(maxSuspects);

  add(requests: readonly InFlight[]): void {
    const hashes = new Set(requests.flatMap(({ bodyHash }) => bodyHash ?? []));
    for (const hash of hashes) {
      this.#crashes.set(hash, (this.#crashes.get(hash) ?? 0) + 1);
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
