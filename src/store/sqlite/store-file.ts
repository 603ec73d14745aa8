/** A store's file as its user handles it, beside a server or without one: checked, copied, read out, set aside. */

import { closeSync, existsSync, openSync, renameSync, rmSync } from "node:fs";
import Database from "libsql";
import { FermataError, invalidOption } from "../../errors.ts";
import { SqliteDatabase } from "./database.ts";
import { openDatabase, problemsOf } from "./open.ts";
import { Runs } from "./runs.ts";

/** What is wrong with the file. Empty: it is sound. @throws FermataError store_invalid: there is none */
export function checkStore(path: string): string[] {
  needFile(path);
  let database: Database.Database | undefined;
  try {
    database = new Database(path);
    database.exec("PRAGMA busy_timeout = 5000");
    return problemsOf(database, "integrity_check");
  } catch (error) {
    return [(error as Error).message];
  } finally {
    database?.close();
  }
}

/**
 * Renames a broken store and what belongs to it. Nothing is deleted.
 * @returns the new name
 * @throws FermataError store_in_use: another process has it open
 */
export function setStoreAside(path: string): string {
  const process = livingProcess(path);
  if (process !== null) {
    const message = `The store ${path} is in use by process ${process}. Stop that server first.`;
    throw new FermataError("store_in_use", message, { param: "store" });
  }
  let count = 1;
  while (existsSync(`${path}.broken-${count}`)) count += 1;
  const aside = `${path}.broken-${count}`;
  for (const suffix of ["-wal", "-shm", ""])
    if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
  return aside;
}

/** Null too where the file is too broken to tell. */
function livingProcess(path: string): number | null {
  let database: Database.Database | undefined;
  try {
    database = new Database(path);
    return Runs.livingProcess(new SqliteDatabase(database));
  } catch {
    return null;
  } finally {
    database?.close();
  }
}

/** A copy of one moment, without free pages; servers go on meanwhile. @throws FermataError store_invalid | invalid_option: the target exists */
export function backUpStore(path: string, target: string): void {
  const database = openExisting(path);
  try {
    // Only the user may read it, as the store itself.
    closeSync(openSync(target, "wx", 0o600));
  } catch (cause) {
    database.close();
    const { code, message } = cause as NodeJS.ErrnoException;
    const problem = code === "EEXIST" ? "exists" : `cannot be written: ${message}`;
    const text = `${target} ${problem}. Name another file.`;
    throw invalidOption(text, "TARGET", cause);
  }
  try {
    database.prepare("VACUUM INTO ?").run(target);
    const copy = new Database(target);
    // The servers that have the store open have not the copy.
    copy.exec("UPDATE runs SET place = '', seen_at = 0");
    copy.close();
  } catch (cause) {
    rmSync(target, { force: true });
    const message = `The store could not be copied to ${target}: ${(cause as Error).message}`;
    throw new FermataError("store_invalid", message, { cause });
  } finally {
    database.close();
  }
}

interface Row {
  id: string;
  owner: string;
  [column: string]: unknown;
}

/** Every response, conversation and branched conversation with what is in it, the oldest first. @throws FermataError store_invalid */
export function* storeEntries(path: string): Generator<object, void, void> {
  const database = openExisting(path);
  const rows = (sql: string, ...values: string[]) =>
    database.prepare(sql).iterate(...values) as Iterable<Row>;
  const bodies = (sql: string, id: string, part?: number): unknown[] =>
    [...rows(sql, id)].filter((row) => part === row["part"]).map(({ body }) => parsed(body));
  try {
    for (const { body, ...row } of rows(
      "SELECT id, owner, created_at, body FROM responses ORDER BY created_at, rowid",
    )) {
      const items = `SELECT part, body FROM response_items JOIN items ON items.key = item
        WHERE response_id = ? AND part > 0 ORDER BY position`;
      const output = bodies(items, row.id, 2);
      yield {
        kind: "response",
        ...row,
        response: { ...(parsed(body) as object), output },
        input: bodies(items, row.id, 1),
      };
    }
    for (const { metadata, ...row } of rows(
      "SELECT id, owner, created_at, metadata FROM conversations ORDER BY created_at, rowid",
    )) {
      const items = `SELECT body FROM conversation_items JOIN items ON items.key = item
        WHERE conversation_id = ? ORDER BY position`;
      yield {
        kind: "conversation",
        ...row,
        metadata: parsed(metadata),
        items: bodies(items, row.id),
      };
    }
    for (const { settings, ...row } of rows(
      `SELECT id, owner, title, created_at, updated_at, leaf_id, settings
       FROM branched_conversations ORDER BY created_at, rowid`,
    )) {
      const messages = rows(
        `SELECT id, parent_id, created_at, body FROM branched_messages
         WHERE conversation_id = ? ORDER BY position`,
        row.id,
      );
      yield {
        kind: "branched_conversation",
        ...row,
        settings: parsed(settings),
        messages: Array.from(messages, ({ body, ...message }) => ({
          ...message,
          ...(parsed(body) as object),
        })),
      };
    }
  } finally {
    database.close();
  }
}

function parsed(text: unknown): unknown {
  return JSON.parse(String(text));
}

function openExisting(path: string): Database.Database {
  needFile(path);
  return openDatabase(path);
}

function needFile(path: string): void {
  if (existsSync(path)) return;
  throw new FermataError("store_invalid", `There is no store ${path}. Name one with --store.`, {
    param: "store",
  });
}
