/** Keeps the file within its limits: the oldest goes first, what is being written stays. */

import type { Database } from "libsql";
import type { ItemTable } from "./item-table.ts";
import { nowSeconds } from "./runs.ts";

export interface RetentionLimits {
  /** Responses. */
  maxCount: number;
  maxAgeSeconds: number;
  /** Of the file's pages that are in use; those that are free stay in it for what comes. */
  maxBytes: number;
}

/** Of a branched conversation: nothing is being written. */
const isIdle = "id NOT IN (SELECT conversation_id FROM branched_runs WHERE process IS NOT NULL)";

/** A share of the oldest goes at once when the file is too large. */
const share = 20;

export function applyRetention(
  database: Database,
  items: ItemTable,
  { maxCount, maxAgeSeconds, maxBytes }: RetentionLimits,
): void {
  const oldest = nowSeconds() - maxAgeSeconds;
  database.prepare("DELETE FROM responses WHERE run IS NULL AND created_at < ?").run(oldest);
  database.prepare("DELETE FROM conversations WHERE used_at < ?").run(oldest);
  database
    .prepare(`DELETE FROM branched_conversations WHERE updated_at < ? AND ${isIdle}`)
    .run(oldest * 1000);
  deleteOldest(database, countOf(database) - maxCount);
  items.deleteOrphans();
  while (bytesOf(database) > maxBytes) {
    const before = countOf(database);
    deleteOldest(database, Math.ceil(before / share));
    if (countOf(database) === before && !deleteOldestConversation(database)) return;
    items.deleteOrphans();
  }
}

function deleteOldest(database: Database, count: number): void {
  if (count <= 0) return;
  database
    .prepare(
      `DELETE FROM responses WHERE id IN
       (SELECT id FROM responses WHERE run IS NULL ORDER BY created_at, rowid LIMIT ?)`,
    )
    .run(count);
}

/** Of either kind. */
function deleteOldestConversation(database: Database): boolean {
  const deletions = [
    "DELETE FROM conversations WHERE id IN (SELECT id FROM conversations ORDER BY used_at LIMIT 1)",
    `DELETE FROM branched_conversations WHERE id IN
     (SELECT id FROM branched_conversations WHERE ${isIdle} ORDER BY updated_at LIMIT 1)`,
  ];
  return deletions.some((deletion) => database.prepare(deletion).run().changes > 0);
}

function countOf(database: Database): number {
  const row = database.prepare("SELECT count(*) AS value FROM responses").get();
  return (row as { value: number }).value;
}

/** The file knows it: to add up what its rows hold would read all of them, while every stream waits. */
function bytesOf(database: Database): number {
  const value = (name: string): number => {
    const row = database.prepare(`PRAGMA ${name}`).get() as Record<string, number>;
    return row[name]!;
  };
  return (value("page_count") - value("freelist_count")) * value("page_size");
}
