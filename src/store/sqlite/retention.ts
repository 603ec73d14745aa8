/** Keeps the file within its limits. The owner that keeps the most loses its oldest entries first; entries that are being written stay. */

import { deleteOrphans, isOrphan } from "../items.ts";
import { eventsSeconds, nowSeconds, type RetentionLimits } from "../retention-limits.ts";
import { all, column, run, sql, type Work } from "../sql.ts";

/** No run writes to the branched conversation. */
const isIdle = sql`id NOT IN (SELECT conversation_id FROM branched_runs WHERE process IS NOT NULL)`;

/** Entries deleted in one step when the file is too large. */
const step = 10;

/** All entries of all owners, with the time of their last use in seconds. */
const entries = sql`
  SELECT 'responses' AS kind, id, owner, created_at AS used, rowid AS row FROM responses WHERE run IS NULL
  UNION ALL SELECT 'conversations', id, owner, used_at, rowid FROM conversations
  UNION ALL SELECT 'branched_conversations', id, owner, updated_at / 1000, rowid FROM branched_conversations WHERE ${isIdle}`;

/** @param isClockBelieved false: nothing is deleted for its age */
export function* applyRetention(
  { maxCount, maxAgeSeconds, maxBytes }: RetentionLimits,
  isClockBelieved: boolean,
): Work<void> {
  if (isClockBelieved) yield* deleteOld(maxAgeSeconds);
  yield* deleteBeyond(maxCount);
  yield* run(sql`DELETE FROM items WHERE ${isOrphan}`);
  let isLess = true;
  while (isLess && (yield* bytes()) > maxBytes) isLess = yield* deleteOldest();
}

function* deleteOld(maxAgeSeconds: number): Work<void> {
  const oldest = nowSeconds() - maxAgeSeconds;
  yield* run(sql`DELETE FROM responses WHERE run IS NULL AND created_at < ${oldest}`);
  yield* run(sql`DELETE FROM conversations WHERE used_at < ${oldest}`);
  yield* run(
    sql`DELETE FROM branched_conversations WHERE updated_at < ${oldest * 1000} AND ${isIdle}`,
  );
  yield* deleteEvents();
}

/** Counts each owner's responses separately. */
function* deleteBeyond(maxCount: number): Work<void> {
  yield* run(sql`DELETE FROM responses WHERE id IN (SELECT id FROM
         (SELECT id, run, row_number() OVER (PARTITION BY owner ORDER BY created_at DESC, rowid DESC) AS place
          FROM responses)
       WHERE place > ${maxCount} AND run IS NULL)`);
}

function* deleteEvents(): Work<void> {
  const before = nowSeconds() - eventsSeconds;
  yield* run(sql`DELETE FROM response_events WHERE response_id IN
       (SELECT id FROM responses WHERE run IS NULL AND created_at < ${before}
        AND id NOT IN (SELECT response_id FROM response_holds))`);
  yield* run(sql`DELETE FROM branched_events WHERE run_id IN
       (SELECT branched_runs.id FROM branched_runs
        JOIN branched_messages ON branched_messages.id = message_id
        WHERE process IS NULL AND created_at < ${before * 1000})`);
}

/** Deletes the oldest entries of the owner that keeps the most, with the items that only they use. @returns false: nothing may be deleted */
function* deleteOldest(): Work<boolean> {
  const rows = yield* all<{ kind: keyof typeof deletions; id: string }>(sql`
       WITH entries AS (${entries}),
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
       ORDER BY used, row LIMIT ${step}`);
  for (const { kind, id } of rows) {
    const { items, entry } = deletions[kind];
    const keys = items === null ? [] : yield* column<number>(items(id));
    yield* run(entry(id));
    yield* deleteOrphans(keys);
  }
  return rows.length > 0;
}

const deletions = {
  responses: {
    items: (id: string) => sql`SELECT item FROM response_items WHERE response_id = ${id}`,
    entry: (id: string) => sql`DELETE FROM responses WHERE id = ${id}`,
  },
  conversations: {
    items: (id: string) => sql`SELECT item FROM conversation_items WHERE conversation_id = ${id}`,
    entry: (id: string) => sql`DELETE FROM conversations WHERE id = ${id}`,
  },
  branched_conversations: {
    items: null,
    entry: (id: string) => sql`DELETE FROM branched_conversations WHERE id = ${id}`,
  },
};

/** From the file's header: adding up the rows would read all of them. */
function* bytes(): Work<number> {
  const [pages, free, size] = [
    yield* column<number>(sql`PRAGMA page_count`),
    yield* column<number>(sql`PRAGMA freelist_count`),
    yield* column<number>(sql`PRAGMA page_size`),
  ];
  return (pages[0]! - free[0]!) * size[0]!;
}
