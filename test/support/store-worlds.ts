/** The stores, for tests that both must pass: a file, and a database that is empty for each test. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import type { PostgresStore } from "../../src/store/postgres/postgres-store.ts";
import { openPostgresStore } from "../../src/store/postgres/postgres-store.ts";
import type { StoreOptions } from "../../src/store/retention-limits.ts";
import { SqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { onDatabase, postgresPrograms, postgresServer } from "./postgres-server.ts";

export interface StoreWorld {
  /** Another process of the same store, once its limits are kept. */
  open(options?: StoreOptions): Promise<SqliteStore | PostgresStore>;
  /** The rows of a statement that both databases know. */
  query<Row>(statement: string): Promise<Row[]>;
  /** What is at work belongs to a process that is gone from now on. */
  die(): Promise<void>;
  /** Once the limits are kept that were due. */
  retained(store: SqliteStore | PostgresStore): Promise<void>;
  /** Its stores close too: one left open would be a process of whatever comes into the same database. */
  remove(): Promise<void>;
}

export type StoreKind = "sqlite" | "postgres";

/** Those of this machine. */
export const storeKinds: StoreKind[] =
  postgresPrograms() === null ? ["sqlite"] : ["sqlite", "postgres"];
if (storeKinds.length === 1)
  console.warn("no Postgres on this machine: its tests are skipped (see CONTRIBUTING.md)");

/** Of tests that know only that there is a store: FERMATA_TEST_STORE, or a file. */
export const storeOfTests = (process.env["FERMATA_TEST_STORE"] ?? "sqlite") as StoreKind;

export async function storeWorld(kind: StoreKind = storeOfTests): Promise<StoreWorld> {
  return kind === "sqlite" ? fileWorld() : await databaseWorld();
}

function fileWorld(): StoreWorld {
  const folder = mkdtempSync(join(tmpdir(), "fermata-store-"));
  const path = join(folder, "deeper", "store.sqlite");
  const query = async <Row>(statement: string): Promise<Row[]> => {
    const database = new Database(path);
    try {
      const prepared = database.prepare(statement);
      if (prepared.reader) return prepared.all() as Row[];
      prepared.run();
      return [];
    } finally {
      database.close();
    }
  };
  const opened: SqliteStore[] = [];
  return {
    async open(options) {
      const store = new SqliteStore(path, options);
      opened.push(store);
      return store;
    },
    query,
    async die() {
      const { pid } = spawnSync(process.execPath, ["--version"]);
      await query(`UPDATE runs SET pid = ${pid}, id = 'gone' WHERE id IN (SELECT run FROM responses
        UNION SELECT process FROM branched_runs)`);
      await query("UPDATE responses SET run = 'gone' WHERE run IS NOT NULL");
      await query("UPDATE branched_runs SET process = 'gone' WHERE process IS NOT NULL");
    },
    retained: async () => {},
    async remove() {
      for (const store of opened) await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Names of databases of worlds that were not removed. */
const taken = new Set<string>();

async function databaseWorld(): Promise<StoreWorld> {
  const server = (await postgresServer())!;
  let count = 1;
  while (taken.has(`world${count}`)) count += 1;
  const name = `world${count}`;
  taken.add(name);
  const address = await server.emptyDatabase(name);
  const query = async <Row>(statement: string): Promise<Row[]> =>
    await onDatabase<Row>(address, `SET search_path = fermata; ${statement}`);
  const opened: PostgresStore[] = [];
  return {
    async open(options) {
      const store = await openPostgresStore(address, options);
      opened.push(store);
      await store.retained();
      return store;
    },
    query,
    async die() {
      await query(`INSERT INTO processes (id, place, pid, seen_at)
          VALUES ('gone', '', 1, now() - interval '1 hour') ON CONFLICT DO NOTHING;
        UPDATE responses SET run = 'gone' WHERE run IS NOT NULL;
        UPDATE branched_runs SET process = 'gone' WHERE process IS NOT NULL`);
    },
    retained: async (store) => await (store as PostgresStore).retained(),
    async remove() {
      for (const store of opened) await store.close();
      taken.delete(name);
    },
  };
}
