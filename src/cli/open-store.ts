/** The file that keeps responses, where the options or the system's habits want it. */

import { join } from "node:path";
import type { SqliteStore } from "../store/sqlite/sqlite-store.ts";
import type { ServeConfig } from "./options.ts";
import { userFolder } from "./user-folders.ts";

/** Null: nothing is kept. @throws FermataError store_invalid */
export async function openStore(config: ServeConfig): Promise<SqliteStore | null> {
  const path = storePath(config);
  if (path === null) return null;
  const { days, responses, megabytes } = config.storeLimits;
  // The database's library takes its time to load: only who needs it waits for it.
  const { SqliteStore } = await import("../store/sqlite/sqlite-store.ts");
  return new SqliteStore(path, {
    limits: {
      maxCount: responses,
      maxAgeSeconds: days * 24 * 3600,
      maxBytes: megabytes * 1024 ** 2,
    },
  });
}

/** Null: nothing is kept. */
export function storePath({ store }: ServeConfig): string | null {
  if (store === "none") return null;
  return store ?? join(userFolder("data"), "store.sqlite");
}
