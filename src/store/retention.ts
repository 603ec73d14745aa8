/**
 * What goes where a store is beyond its limits. The owner that keeps the most loses its oldest entries first; entries that are
 * being written stay. Within the caller's transaction.
 */

import type { StoreHost } from "./host.ts";
import { deleteOrphans } from "./items.ts";
import { all, column, run, sql, type Work } from "./sql.ts";

export interface Entry {
  kind: "responses" | "conversations" | "branched_conversations";
  id: string;
  owner: string;
}

type Row = StoreHost["row"];

/** No run writes to the branched conversation. */
const isIdle = sql`id NOT IN
  (SELECT conversation_id FROM fermata.branched_runs WHERE process IS NOT NULL)`;

/** Those that were used last before `oldest`, in seconds; of each kind at most `limit`. */
export function* old(oldest: number, limit: number): Work<Entry[]> {
  return yield* all<Entry>(sql`
    SELECT * FROM (SELECT 'responses' AS kind, id, owner FROM fermata.responses
      WHERE run IS NULL AND created_at < ${oldest}
        AND id NOT IN (SELECT response_id FROM fermata.response_holds) LIMIT ${limit}) AS old_responses
    UNION ALL SELECT * FROM (SELECT 'conversations', id, owner FROM fermata.conversations
      WHERE used_at < ${oldest} LIMIT ${limit}) AS old_conversations
    UNION ALL SELECT * FROM (SELECT 'branched_conversations', id, owner
      FROM fermata.branched_conversations
      WHERE updated_at < ${oldest * 1000} AND ${isIdle} LIMIT ${limit}) AS old_branches`);
}

/** Counts each owner's responses separately. */
export function* beyond(maxCount: number, row: Row, limit: number): Work<Entry[]> {
  return yield* all<Entry>(sql`SELECT 'responses' AS kind, id, owner FROM
      (SELECT id, owner, run,
         row_number() OVER (PARTITION BY owner ORDER BY created_at DESC, ${row} DESC) AS place
       FROM fermata.responses) AS placed
    WHERE place > ${maxCount} AND run IS NULL LIMIT ${limit}`);
}

/** The oldest entries of the owner that keeps the most. */
export function* oldestOfLargest(row: Row, limit: number): Work<Entry[]> {
  return yield* all<Entry>(sql`
    WITH entries AS (
      SELECT 'responses' AS kind, id, owner, created_at AS used, ${row} AS place
      FROM fermata.responses WHERE run IS NULL
      UNION ALL SELECT 'conversations', id, owner, used_at, ${row} FROM fermata.conversations
      UNION ALL SELECT 'branched_conversations', id, owner, updated_at / 1000, ${row}
      FROM fermata.branched_conversations WHERE ${isIdle}),
    sizes AS (
      SELECT owner, sum(bytes) AS bytes FROM (
        SELECT owner, octet_length(body) AS bytes FROM fermata.items
        UNION ALL SELECT owner, octet_length(body) FROM fermata.responses
        UNION ALL SELECT owner, octet_length(body) FROM fermata.branched_messages
        JOIN fermata.branched_conversations ON branched_conversations.id = conversation_id) AS sized
      GROUP BY owner)
    SELECT kind, id, owner FROM entries WHERE owner =
      (SELECT entries.owner FROM entries LEFT JOIN sizes ON sizes.owner = entries.owner
       ORDER BY coalesce(bytes, 0) DESC LIMIT 1)
    ORDER BY used, place LIMIT ${limit}`);
}

/** With the items that only they use. @returns false: there was nothing to delete */
export function* deleteEntries(
  entries: readonly Entry[],
  lockItems: StoreHost["lockItems"],
): Work<boolean> {
  // In the order of the owners, as whoever else locks items of several.
  for (const entry of entries.toSorted((a, b) => (a.owner < b.owner ? -1 : 1)))
    yield* deleteEntry(entry, lockItems);
  return entries.length > 0;
}

function* deleteEntry({ kind, id, owner }: Entry, lockItems: StoreHost["lockItems"]): Work<void> {
  if (kind === "branched_conversations") {
    yield* run(sql`DELETE FROM fermata.branched_conversations WHERE id = ${id}`);
    return;
  }
  yield* lockItems(owner);
  const isResponse = kind === "responses";
  const keys = yield* column<number>(
    isResponse
      ? sql`SELECT DISTINCT item FROM fermata.response_items WHERE response_id = ${id}`
      : sql`SELECT DISTINCT item FROM fermata.conversation_items WHERE conversation_id = ${id}`,
  );
  yield* run(
    isResponse
      ? sql`DELETE FROM fermata.responses WHERE id = ${id}`
      : sql`DELETE FROM fermata.conversations WHERE id = ${id}`,
  );
  yield* deleteOrphans(keys);
}
