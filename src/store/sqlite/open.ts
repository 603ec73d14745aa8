/** Opens the file that keeps responses and conversations, and brings its schema up to date: a step a version, and a step that was released never changes. */

import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import Database from "libsql";
import { FermataError } from "../../errors.ts";
import { SqliteDatabase } from "./database.ts";

/**
 * Only the user may read a new file.
 * @param path null: in memory, until it is closed @throws FermataError store_invalid: a broken file is left as it is
 */
export function openDatabase(path: string | null): Database.Database {
  let database: Database.Database | undefined;
  try {
    if (path !== null) {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      closeSync(openSync(path, "a", 0o600));
    }
    database = new Database(path ?? ":memory:");
    // First, because a change of the journal's mode takes a lock that another process may hold.
    database.exec("PRAGMA busy_timeout = 5000");
    const [problem] = problemsOf(database, "quick_check(1)");
    if (problem !== undefined) throw new BrokenStore(problem);
    // The end of the process loses nothing that was committed; a power failure may lose the last writes.
    database.exec("PRAGMA journal_mode = WAL");
    database.exec("PRAGMA synchronous = NORMAL");
    database.exec("PRAGMA foreign_keys = ON");
    if (path === null) database.exec("PRAGMA temp_store = MEMORY");
    migrate(database);
    return database;
  } catch (error) {
    database?.close();
    if (error instanceof FermataError) throw error;
    const { message: problem, code = "" } = error as Error & { code?: string };
    const isBroken = error instanceof BrokenStore || code.startsWith("SQLITE_CORRUPT");
    const message = isBroken
      ? `The store ${path} is broken: ${problem}. Set it aside with "fermata store check --set-aside --store ${path}", serve a backup with --store FILE, or serve without a store: --store-optional.`
      : `The store ${path} cannot be used: ${problem}. Name another --store, or serve without one if it cannot be opened: --store-optional.`;
    throw new FermataError("store_invalid", message, { cause: error });
  }
}

class BrokenStore extends Error {}

/** What SQLite finds wrong. @throws its error: the file cannot even be read */
export function problemsOf(database: Database.Database, check: string): string[] {
  const rows = database.prepare(`PRAGMA ${check}`).all() as Record<string, string>[];
  return rows.flatMap((row) => Object.values(row)).filter((text) => text !== "ok");
}

const migrations: readonly string[] = [
  `
  CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    pid INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
  );
  CREATE TABLE items (
    key INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    digest TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (owner, id)
  );
  CREATE INDEX items_by_digest ON items (owner, digest);
  CREATE TABLE responses (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    -- Null once it is finished; else who is at work on it.
    run TEXT,
    previous_response_id TEXT,
    conversation_id TEXT,
    body TEXT NOT NULL,
    events TEXT
  );
  CREATE INDEX responses_by_age ON responses (created_at);
  CREATE INDEX responses_by_run ON responses (run) WHERE run IS NOT NULL;
  CREATE TABLE response_items (
    response_id TEXT NOT NULL REFERENCES responses (id) ON DELETE CASCADE,
    -- 0: history, 1: input, 2: output
    part INTEGER NOT NULL,
    position INTEGER NOT NULL,
    item INTEGER NOT NULL REFERENCES items (key),
    PRIMARY KEY (response_id, part, position)
  ) WITHOUT ROWID;
  CREATE INDEX response_items_by_item ON response_items (item);
  CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    metadata TEXT NOT NULL
  );
  CREATE TABLE conversation_items (
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    item INTEGER NOT NULL REFERENCES items (key),
    PRIMARY KEY (conversation_id, position)
  ) WITHOUT ROWID;
  CREATE INDEX conversation_items_by_item ON conversation_items (item);
  `,
  `
  CREATE TABLE response_events (
    response_id TEXT NOT NULL REFERENCES responses (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (response_id, number)
  ) WITHOUT ROWID;
  INSERT INTO response_events (response_id, number, body)
    SELECT responses.id, each.key, each.value
    FROM responses, json_each(responses.events) AS each WHERE responses.events IS NOT NULL;
  ALTER TABLE responses DROP COLUMN events;
  `,
  `
  CREATE TABLE branched_conversations (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    title TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    leaf_id TEXT,
    settings TEXT NOT NULL
  );
  CREATE INDEX branched_conversations_by_use ON branched_conversations (owner, updated_at);
  CREATE TABLE branched_messages (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    conversation_id TEXT NOT NULL REFERENCES branched_conversations (id) ON DELETE CASCADE,
    parent_id TEXT,
    created_at INTEGER NOT NULL,
    run_id TEXT,
    body TEXT NOT NULL
  );
  CREATE INDEX branched_messages_by_conversation ON branched_messages (conversation_id);
  CREATE TABLE branched_runs (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES branched_conversations (id) ON DELETE CASCADE,
    message_id TEXT NOT NULL,
    -- Null once it has ended; else who is at work on it.
    process TEXT
  );
  CREATE INDEX branched_runs_by_conversation ON branched_runs (conversation_id);
  CREATE INDEX branched_runs_by_process ON branched_runs (process) WHERE process IS NOT NULL;
  CREATE TABLE branched_events (
    run_id TEXT NOT NULL REFERENCES branched_runs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
  ) WITHOUT ROWID;
  CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
  ) WITHOUT ROWID;
  `,
  `
  -- What waits for its client: its response is in progress, and nobody's when its process has ended.
  CREATE TABLE response_holds (
    response_id TEXT PRIMARY KEY REFERENCES responses (id) ON DELETE CASCADE,
    request TEXT NOT NULL,
    next INTEGER NOT NULL,
    deadline INTEGER NOT NULL
  ) WITHOUT ROWID;
  `,
  `
  -- Where a process's number counts, and when it began: another may have its number later.
  ALTER TABLE runs ADD COLUMN place TEXT;
  ALTER TABLE runs ADD COLUMN began TEXT;
  `,
  `
  CREATE TABLE branched_holds (
    run_id TEXT PRIMARY KEY REFERENCES branched_runs (id) ON DELETE CASCADE,
    request TEXT NOT NULL,
    round TEXT NOT NULL,
    resumes INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE branched_held_calls (
    run_id TEXT NOT NULL REFERENCES branched_holds (run_id) ON DELETE CASCADE,
    call_id TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (run_id, call_id)
  ) WITHOUT ROWID;
  `,
  `
  -- What calls have come to that outlive their process. The holder is the held run or the response that made them.
  CREATE TABLE held_calls (
    holder TEXT NOT NULL,
    call_id TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (holder, call_id)
  ) WITHOUT ROWID;
  CREATE INDEX held_calls_by_call ON held_calls (call_id);
  INSERT INTO held_calls (holder, call_id, state)
    SELECT run_id, call_id, state FROM branched_held_calls;
  DROP TABLE branched_held_calls;
  CREATE TRIGGER held_calls_of_run AFTER DELETE ON branched_holds
    BEGIN DELETE FROM held_calls WHERE holder = OLD.run_id; END;
  CREATE TRIGGER held_calls_of_response AFTER DELETE ON responses
    BEGIN DELETE FROM held_calls WHERE holder = OLD.id; END;
  `,
  `
  ALTER TABLE response_holds ADD COLUMN round TEXT NOT NULL DEFAULT 'null';
  `,
  `
  -- What the model drew, as a JSON list: see NumberedEvent.
  ALTER TABLE branched_events ADD COLUMN tokens TEXT;
  ALTER TABLE response_events ADD COLUMN tokens TEXT;
  ALTER TABLE response_holds ADD COLUMN resumes INTEGER NOT NULL DEFAULT 0;
  `,
];

/** @throws FermataError store_invalid: a later version of Fermata wrote the file */
function migrate(database: Database.Database): void {
  const version = versionOf(database);
  if (version > migrations.length) {
    const message = `The store has version ${version}, and this Fermata knows ${migrations.length}. Use a later Fermata or another --store.`;
    throw new FermataError("store_invalid", message);
  }
  new SqliteDatabase(database).atOnce(() => {
    // Another process may have been faster.
    for (let next = versionOf(database); next < migrations.length; next++) {
      database.exec(migrations[next]!);
      database.exec(`PRAGMA user_version = ${next + 1}`);
    }
  });
}

function versionOf(database: Database.Database): number {
  const row = database.prepare("PRAGMA user_version").get() as { user_version: number };
  return row.user_version;
}
