/** What the store does for its parts. Type-only. */

import type { StoreHost } from "../host.ts";
import type { Claims } from "./claims.ts";

export interface PostgresHost extends StoreHost {
  claims: Claims;
  /** False: none has left anything. */
  forgetDead(): Promise<boolean>;
  /** Others may follow the response or run. */
  changed(id: string): void;
}
