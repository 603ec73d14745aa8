/** What a store does for its parts. */

import type { Soon } from "./sql.ts";

export interface StoreHost {
  /** Of this process among those that have the store open. */
  processId: string;
  /** Forgets those that are gone. Of a file within a transaction, as `keepLimits`. */
  forgetDead(): unknown;
  /** Called with each response and run that begins. */
  keepLimits(): void;
  /** Tried again later if it fails. @throws its first error */
  writeEnd(id: string, work: () => Soon<void>): Promise<void>;
}

/** What has ended is written as ended, now or later: while this process lives nobody else ends it. */
export class Ends {
  /** That could not be written, by the ids of what they end. */
  readonly #unwritten = new Map<string, () => Soon<void>>();

  /** @throws what prevents it now */
  async write(id: string, work: () => Soon<void>): Promise<void> {
    this.#unwritten.set(id, work);
    await work();
    this.#unwritten.delete(id);
  }

  async writeAll(): Promise<void> {
    try {
      for (const [id, work] of this.#unwritten) await this.write(id, work);
    } catch {
      // Its caller knows why since the first time; the next sign of life tries again.
    }
  }
}
