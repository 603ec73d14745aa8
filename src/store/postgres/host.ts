/** What the store does for its parts. Type-only. */

import type { Claims } from "./claims.ts";

export interface StoreHost {
  claims: Claims;
  processId: string;
  /** Forgets processes that are gone. False: none has left anything. */
  forgetDead(): Promise<boolean>;
  /** Called with each response and run that begins. */
  keepLimits(): void;
  /** Tried again later if it fails. @throws its first error */
  writeEnd(id: string, work: () => Promise<void>): Promise<void>;
  /** Others may follow the response or run. */
  changed(id: string): void;
}
