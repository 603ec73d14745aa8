/** Keeps the file within its limits: the oldest goes first, what is being written stays. */

import type { Database } from "libsql";
import type { ItemTable } from "./item-table.ts";
import { nowSeconds } from "./runs.ts";

export interface RetentionLimits {
  /** Responses. */
  maxCount: number;
  maxAgeSeconds: number;
  /** Of bodies, items and events; the file is a little larger. */
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
  return numberOf(database, "SELECT count(*) AS value FROM responses");
}

function bytesOf(database: Database): number {
  return (
    numberOf(database, "SELECT coalesce(sum(length(body)), 0) AS value FROM items") +
    numberOf(database, "SELECT coalesce(sum(length(body)), 0) AS value FROM responses") +
    numberOf(database, "SELECT coalesce(sum(length(body)), 0) AS value FROM response_events") +
    numberOf(database, "SELECT coalesce(sum(length(body)), 0) AS value FROM branched_messages") +
    numberOf(database, "SELECT coalesce(sum(length(body)), 0) AS value FROM branched_events")
  );
}

function numberOf(database: Database, query: string): number {
  return (database.prepare(query).get() as { value: number }).value;
}
