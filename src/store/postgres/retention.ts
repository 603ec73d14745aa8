/** Keeps the database within its limits, in steps that are short. The owner that keeps the most loses its oldest entries first; entries that are being written stay. */

import { eventsSeconds, nowSeconds, type RetentionLimits } from "../retention-limits.ts";
import { deleteOrphans } from "../items.ts";
import { all, column, run, sql, type Work } from "../sql.ts";
import type { PostgresDatabase } from "./database.ts";
import { lockClass, lockItems, retentionLock } from "./schema.ts";

/** Entries deleted in one step. */
const step = 10;
/** Rows of events deleted in one step. */
const eventStep = 1000;
/** How long the outcomes of transactions are kept, and what processes told each other. */
const writesSeconds = 3600;

type Kind = "responses" | "conversations" | "branched_conversations";

interface Entry {
  kind: Kind;
  id: string;
  owner: string;
}

/** Of all processes one does it at a time. @param isClockBelieved false: nothing is deleted for its age */
export async function applyRetention(
  database: PostgresDatabase,
  { maxCount, maxAgeSeconds, maxBytes }: RetentionLimits,
  isClockBelieved: boolean,
): Promise<void> {
  if (isClockBelieved) {
    const oldest = nowSeconds() - maxAgeSeconds;
    await repeat(() => deleteStep(database, () => old(oldest)));
    await deleteEvents(database);
  }
  await repeat(() => deleteStep(database, () => beyond(maxCount)));
  while ((await bytesOf(database)) > maxBytes)
    if (!(await deleteStep(database, oldestOfLargest))) break;
}

async function repeat(work: () => Promise<boolean>): Promise<void> {
  let isMore = true;
  while (isMore) isMore = await work();
}

/** @returns false: there was nothing to delete, or another process does it */
async function deleteStep(database: PostgresDatabase, find: () => Work<Entry[]>): Promise<boolean> {
  return await database.inTransaction(function* () {
    const [isMine] = yield* column<boolean>(
      sql`SELECT pg_try_advisory_xact_lock(${lockClass}, ${retentionLock})`,
    );
    if (isMine !== true) return false;
    const entries = yield* find();
    // In the order of the owners, as whoever else locks items of several.
    for (const entry of entries.toSorted((a, b) => (a.owner < b.owner ? -1 : 1)))
      yield* deleteEntry(entry);
    return entries.length > 0;
  });
}

function* deleteEntry({ kind, id, owner }: Entry): Work<void> {
  if (kind === "branched_conversations") {
    yield* run(sql`DELETE FROM fermata.branched_conversations WHERE id = ${id}`);
    return;
  }
  yield* lockItems(owner);
  const keys =
    kind === "responses"
      ? sql`SELECT DISTINCT item FROM fermata.response_items WHERE response_id = ${id}`
      : sql`SELECT DISTINCT item FROM fermata.conversation_items WHERE conversation_id = ${id}`;
  const items = yield* column<number>(keys);
  yield* run(
    kind === "responses"
      ? sql`DELETE FROM fermata.responses WHERE id = ${id}`
      : sql`DELETE FROM fermata.conversations WHERE id = ${id}`,
  );
  yield* deleteOrphans(items);
}

function* old(oldest: number): Work<Entry[]> {
  return yield* all<Entry>(sql`
    (SELECT 'responses' AS kind, id, owner FROM fermata.responses
     WHERE run IS NULL AND created_at < ${oldest}
       AND id NOT IN (SELECT response_id FROM fermata.response_holds) LIMIT ${step})
    UNION ALL (SELECT 'conversations', id, owner FROM fermata.conversations
     WHERE used_at < ${oldest} LIMIT ${step})
    UNION ALL (SELECT 'branched_conversations', id, owner FROM fermata.branched_conversations
     WHERE updated_at < ${oldest * 1000}
       AND id NOT IN (SELECT conversation_id FROM fermata.branched_runs WHERE process IS NOT NULL)
     LIMIT ${step})`);
}

/** Counts each owner's responses separately. */
function* beyond(maxCount: number): Work<Entry[]> {
  return yield* all<Entry>(sql`SELECT 'responses' AS kind, id, owner FROM
      (SELECT id, owner, run,
         row_number() OVER (PARTITION BY owner ORDER BY created_at DESC, row DESC) AS place
       FROM fermata.responses) AS placed
    WHERE place > ${maxCount} AND run IS NULL LIMIT ${step}`);
}

/** The oldest entries of the owner that keeps the most. */
function* oldestOfLargest(): Work<Entry[]> {
  return yield* all<Entry>(sql`
    WITH entries AS (
      SELECT 'responses' AS kind, id, owner, created_at AS used, row
      FROM fermata.responses WHERE run IS NULL
      UNION ALL SELECT 'conversations', id, owner, used_at, row FROM fermata.conversations
      UNION ALL SELECT 'branched_conversations', id, owner, updated_at / 1000, row
      FROM fermata.branched_conversations
      WHERE id NOT IN (SELECT conversation_id FROM fermata.branched_runs WHERE process IS NOT NULL)),
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
    ORDER BY used, row LIMIT ${step}`);
}

async function deleteEvents(database: PostgresDatabase): Promise<void> {
  const before = nowSeconds() - eventsSeconds;
  const deletions = [
    sql`DELETE FROM fermata.response_events WHERE ctid IN (SELECT response_events.ctid
      FROM fermata.response_events JOIN fermata.responses ON id = response_id
      WHERE run IS NULL AND created_at < ${before}
        AND id NOT IN (SELECT response_id FROM fermata.response_holds) LIMIT ${eventStep})`,
    sql`DELETE FROM fermata.branched_events WHERE ctid IN (SELECT branched_events.ctid
      FROM fermata.branched_events
      JOIN fermata.branched_runs ON branched_runs.id = run_id
      JOIN fermata.branched_messages ON branched_messages.id = message_id
      WHERE process IS NULL AND created_at < ${before * 1000} LIMIT ${eventStep})`,
    sql`DELETE FROM fermata.writes WHERE ctid IN (SELECT ctid FROM fermata.writes
      WHERE written_at < now() - make_interval(secs => ${writesSeconds}) LIMIT ${eventStep})`,
    sql`DELETE FROM fermata.questions WHERE ctid IN (SELECT ctid FROM fermata.questions
      WHERE changed_at < now() - make_interval(secs => ${writesSeconds})
        AND (NOT is_open OR process NOT IN (SELECT id FROM fermata.processes)) LIMIT ${eventStep})`,
    sql`DELETE FROM fermata.deliveries WHERE ctid IN (SELECT ctid FROM fermata.deliveries
      WHERE sent_at < now() - make_interval(secs => ${writesSeconds}) LIMIT ${eventStep})`,
  ];
  for (const deletion of deletions)
    await repeat(async () => (await database.run(deletion)) === eventStep);
}

/** Of the texts: the size of the tables counts rows that are deleted, too. */
async function bytesOf(database: PostgresDatabase): Promise<number> {
  const [bytes = 0] = await database.column<number>(sql`SELECT (
      (SELECT coalesce(sum(octet_length(body)), 0) FROM fermata.items) +
      (SELECT coalesce(sum(octet_length(body)), 0) FROM fermata.responses) +
      (SELECT coalesce(sum(octet_length(body)), 0) FROM fermata.response_events) +
      (SELECT coalesce(sum(octet_length(body)), 0) FROM fermata.branched_messages) +
      (SELECT coalesce(sum(octet_length(body)), 0) FROM fermata.branched_events))::bigint`);
  return bytes;
}
