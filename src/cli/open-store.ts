/** The file that keeps responses, where the options or the system's habits want it. */

import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { SqliteStore } from "../store/sqlite/sqlite-store.ts";
import type { ServeConfig } from "./options.ts";

type StoreConfig = Pick<ServeConfig, "store" | "storeDays" | "storeResponses" | "storeMegabytes">;

/** Null: nothing is kept. @throws FermataError store_invalid */
export async function openStore(config: StoreConfig): Promise<SqliteStore | null> {
  if (config.store === "none") return null;
  const path = config.store === undefined ? defaultStorePath() : resolve(config.store);
  // The database's library takes its time to load: only who needs it waits for it.
  const { SqliteStore } = await import("../store/sqlite/sqlite-store.ts");
  return new SqliteStore(path, {
    limits: {
      maxCount: config.storeResponses,
      maxAgeSeconds: config.storeDays * 24 * 3600,
      maxBytes: config.storeMegabytes * 1024 ** 2,
    },
  });
}

export function defaultStorePath(
  platform: NodeJS.Platform = process.platform,
  environment: NodeJS.ProcessEnv = process.env,
  home: string = homedir(),
): string {
  const file = join("fermata", "store.sqlite");
  if (platform === "win32")
    return join(environment["LOCALAPPDATA"] ?? join(home, "AppData", "Local"), file);
  if (platform === "darwin") return join(home, "Library", "Application Support", file);
  return join(environment["XDG_DATA_HOME"] || join(home, ".local", "share"), file);
}
