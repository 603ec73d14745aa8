/** What the file's owner does for its parts. Type-only. */

export interface StoreHost {
  /** Of this process among those that have the file open. */
  processId: string;
  /** Forgets those that are gone. Within a transaction, as `keepLimits`. */
  forgetDead(): void;
  /** Called with each response and run that begins. */
  keepLimits(): void;
  /** A transaction that is tried again later if it fails. @throws its first error */
  writeEnd(id: string, work: () => void): void;
}
