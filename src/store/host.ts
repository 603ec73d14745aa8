/** What a store does for its parts, and what only one of the databases knows. */

import type { Query, Soon, Work } from "./sql.ts";
import type { ResponseHoldRow } from "./rows.ts";

/** Work that was another process's, and its claim: see `postgres/claims.ts`. */
export interface Taken {
  id: string;
  claim: number;
}

export interface StoreHost {
  /** Of this process among those that have the store open. */
  readonly processId: string;
  /** What it keeps outlives the process. */
  readonly lasts: boolean;
  /** Forgets those that are gone. False: none has left anything. */
  forgetDead(): Soon<boolean>;
  /** Called with each response and run that begins. */
  keepLimits(): void;
  /** Tried again later if it fails. @throws its first error */
  writeEnd(id: string, work: () => Soon<void>): Promise<void>;
  /** Others may follow the response or run. */
  changed(id: string): void;

  /** This process works on it from now on. */
  begins(work: Taken): void;
  /** @param mayFollow its last events may come yet */
  ends(id: string, mayFollow?: boolean): void;
  /** Nobody has taken it from this process. A condition on a row of `responses` or `branched_runs`. */
  isOwn(id: string): Query;
  /** As `isOwn`; also of what this process does not work on. */
  isNoOthers(id: string): Query;
  /** What an update of such a row sets too: whatever earlier processes still write of it is refused. */
  readonly disowns: Query;
  /** At the end of a statement that reads such rows: nobody takes them until it is done. */
  readonly shared: Query;
  /** The same until the transaction ends. */
  readonly locked: Query;
  /** The order in which rows were made. */
  readonly row: Query;
  /** Who writes items of an owner waits for who does so already: two that store the same would both add it. */
  lockItems(owner: string): Work<void>;
  /** The runs of processes that are gone: they are this one's from now on. */
  takeRuns(): Work<Taken[]>;
  /** Holds of responses that no process works on. */
  leftHolds(): Work<(ResponseHoldRow & { claim: number })[]>;
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
