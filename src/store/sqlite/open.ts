import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import Database from "libsql";
import { FermataError } from "../../errors.ts";
import { migrate } from "./migrations.ts";

/** What is in it is private: only the user may read the file. @throws FermataError store_invalid */
export function openDatabase(path: string): Database.Database {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    closeSync(openSync(path, "a", 0o600));
    const database = new Database(path);
    // A process that dies loses nothing that was committed; only a power failure may lose the last writes.
    database.exec("PRAGMA journal_mode = WAL");
    database.exec("PRAGMA synchronous = NORMAL");
    database.exec("PRAGMA foreign_keys = ON");
    database.exec("PRAGMA busy_timeout = 5000");
    migrate(database);
    return database;
  } catch (error) {
    if (error instanceof FermataError) throw error;
    const problem = error instanceof Error ? error.message : String(error);
    throw new FermataError("store_invalid", `The store ${path} cannot be used: ${problem}`, {
      cause: error,
    });
  }
}
