/** What changes, told to the other processes. A hint: who misses it finds it in the store. */

import { sql, type Statements } from "../sql.ts";
import { channels } from "./session.ts";

/** Events of one moment are told together: a NOTIFY waits for all others of its server. */
const gatherMs = 10;
/** Of one NOTIFY. */
const maxBytes = 7900;

export class Changes {
  readonly #on: Statements;
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #changed = new Set<string>();
  #isGathering = false;

  constructor(on: Statements) {
    this.#on = on;
  }

  /** Calls the listener when `id` may have changed, in any process. @returns what ends it */
  follow(id: string, listener: () => void): () => void {
    const all = this.#listeners.get(id) ?? new Set();
    this.#listeners.set(id, all.add(listener));
    return () => {
      all.delete(listener);
      if (all.size === 0 && this.#listeners.get(id) === all) this.#listeners.delete(id);
    };
  }

  /** @param ids null: anything may have changed */
  heard(ids: readonly string[] | null): void {
    for (const id of ids ?? this.#listeners.keys())
      for (const listener of this.#listeners.get(id) ?? []) listener();
  }

  /** By this process, and stored. */
  tell(id: string): void {
    this.#changed.add(id);
    if (this.#isGathering) return;
    this.#isGathering = true;
    setTimeout(() => void this.#send(), gatherMs).unref();
  }

  async #send(): Promise<void> {
    this.#isGathering = false;
    const ids = [...this.#changed];
    this.#changed.clear();
    try {
      for (const payload of joined(ids))
        await this.#on.run(sql`SELECT pg_notify(${channels.changes}, ${payload})`);
    } catch {
      // Followers look into the store by themselves, too.
    }
  }
}

function joined(ids: readonly string[]): string[] {
  const payloads: string[] = [];
  for (const id of ids) {
    const last = payloads.at(-1);
    const longer = `${last},${id}`;
    if (last !== undefined && longer.length <= maxBytes) payloads[payloads.length - 1] = longer;
    else payloads.push(id);
  }
  return payloads;
}
