/** Where the stores of kill tests are: a new file, or an empty database. */

import { rmSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { expect } from "vitest";
import { postgresServer } from "../../support/postgres-server.ts";
import type { StoreKind } from "../../support/store-worlds.ts";

export interface KillStore {
  /** As `--store` has it. */
  address: string;
  /** @throws where the store is not whole */
  check(): void;
}

/** How often a test kills: FERMATA_KILLS, or a few times. A database is slower, and what follows a kill is mostly the same. */
export function killsOf(kind: StoreKind, few: number): number {
  return Number(process.env["FERMATA_KILLS"] ?? (kind === "postgres" ? Math.ceil(few / 3) : few));
}

export async function killStore(kind: StoreKind, folder: string): Promise<KillStore> {
  if (kind === "postgres")
    return { address: await (await postgresServer())!.emptyDatabase(), check: () => {} };
  const address = join(folder, "store.sqlite");
  rmSync(address, { force: true });
  return { address, check: () => checkFile(address) };
}

function checkFile(path: string): void {
  const database = new Database(path);
  const sound = { integrity_check: "ok" };
  expect(database.prepare("PRAGMA integrity_check").get()).toMatchObject(sound);
  expect(database.prepare("PRAGMA foreign_key_check").all()).toEqual([]);
  database.close();
}
