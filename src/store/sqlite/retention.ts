/** Keeps the file within its limits. The owner that keeps the most loses its oldest entries first; entries that are being written stay. */

import { sql } from "../sql.ts";
import type { StoreDatabase } from "./database.ts";
import type { ItemTable } from "./item-table.ts";
import { eventsSeconds, nowSeconds, type RetentionLimits } from "../retention-limits.ts";

/** No run writes to the branched conversation. */
const isIdle = "id NOT IN (SELECT conversation_id FROM branched_runs WHERE process IS NOT NULL)";

/** Entries deleted in one step when the file is too large. */
const step = 10;

/** All entries of all owners, with the time of their last use in seconds. */
const entries = `
  SELECT 'responses' AS kind, id, owner, created_at AS used, rowid AS row FROM responses WHERE run IS NULL
  UNION ALL SELECT 'conversations', id, owner, used_at, rowid FROM conversations
  UNION ALL SELECT 'branched_conversations', id, owner, updated_at / 1000, rowid FROM branched_conversations WHERE ${isIdle}`;

/** @param isClockBelieved false: nothing is deleted for its age */
export function applyRetention(
  database: StoreDatabase,
  items: ItemTable,
  { maxCount, maxAgeSeconds, maxBytes }: RetentionLimits,
  isClockBelieved: boolean,
): void {
  if (isClockBelieved) deleteOld(database, maxAgeSeconds);
  deleteBeyond(database, maxCount);
  items.deleteOrphans();
  let isLess = true;
  while (isLess && bytesOf(database) > maxBytes) isLess = deleteOldest(database, items);
}

function deleteOld(database: StoreDatabase, maxAgeSeconds: number): void {
  const oldest = nowSeconds() - maxAgeSeconds;
  database.run(sql`DELETE FROM responses WHERE run IS NULL AND created_at < ${oldest}`);
  database.run(sql`DELETE FROM conversations WHERE used_at < ${oldest}`);
  database.run(
    `DELETE FROM branched_conversations WHERE updated_at < ? AND ${isIdle}`,
    oldest * 1000,
  );
  deleteEvents(database);
}

/** Counts each owner's responses separately. */
function deleteBeyond(database: StoreDatabase, maxCount: number): void {
  database.run(sql`DELETE FROM responses WHERE id IN (SELECT id FROM
         (SELECT id, run, row_number() OVER (PARTITION BY owner ORDER BY created_at DESC, rowid DESC) AS place
          FROM responses)
       WHERE place > ${maxCount} AND run IS NULL)`);
}

function deleteEvents(database: StoreDatabase): void {
  const before = nowSeconds() - eventsSeconds;
  database.run(sql`DELETE FROM response_events WHERE response_id IN
       (SELECT id FROM responses WHERE run IS NULL AND created_at < ${before}
        AND id NOT IN (SELECT response_id FROM response_holds))`);
  database.run(sql`DELETE FROM branched_events WHERE run_id IN
       (SELECT branched_runs.id FROM branched_runs
        JOIN branched_messages ON branched_messages.id = message_id
        WHERE process IS NULL AND created_at < ${before * 1000})`);
}

/** Deletes the oldest entries of the owner that keeps the most, with the items that only they use. @returns false: nothing may be deleted */
function deleteOldest(database: StoreDatabase, items: ItemTable): boolean {
  const rows = database.all<{ kind: keyof typeof itemsOf; id: string }>(
    `WITH entries AS (${entries}),
       sizes AS (
         SELECT owner, sum(bytes) AS bytes FROM (
           SELECT owner, octet_length(body) AS bytes FROM items
           UNION ALL SELECT owner, octet_length(body) FROM responses
           UNION ALL SELECT owner, octet_length(body) FROM branched_messages
             JOIN branched_conversations ON branched_conversations.id = conversation_id)
         GROUP BY owner)
       SELECT kind, id FROM entries WHERE owner =
         (SELECT entries.owner FROM entries LEFT JOIN sizes ON sizes.owner = entries.owner
          ORDER BY coalesce(bytes, 0) DESC LIMIT 1)
       ORDER BY used, row LIMIT ?`,
    step,
  );
  for (const { kind, id } of rows) {
    const keys = database.column<number>(itemsOf[kind], id);
    database.run(`DELETE FROM ${kind} WHERE id = ?`, id);
    items.deleteOrphans(keys);
  }
  return rows.length > 0;
}

const itemsOf = {
  responses: "SELECT item FROM response_items WHERE response_id = ?",
  conversations: "SELECT item FROM conversation_items WHERE conversation_id = ?",
  branched_conversations: "SELECT 0 AS item WHERE ? IS NULL",
};

/** From the file's header: adding up the rows would read all of them. */
function bytesOf(database: StoreDatabase): number {
  const value = (name: string): number => database.column<number>(`PRAGMA ${name}`)[0]!;
  return (value("page_count") - value("freelist_count")) * value("page_size");
}
