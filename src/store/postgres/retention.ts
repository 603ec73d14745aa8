/** Keeps the database within its limits, in steps that are short. */

import { beyond, deleteEntries, type Entry, old, oldestOfLargest } from "../retention.ts";
import { eventsSeconds, nowSeconds, type RetentionLimits } from "../retention-limits.ts";
import { column, sql, type Work } from "../sql.ts";
import type { PostgresDatabase } from "./database.ts";
import { lockClass, lockItems, retentionLock } from "./schema.ts";

/** Entries deleted in one step. */
const step = 10;
/** Rows of events deleted in one step. */
const eventStep = 1000;
/** How long the outcomes of transactions are kept, and what processes told each other. */
const writesSeconds = 3600;

const row = sql`row`;

/** Of all processes one does it at a time. @param isClockBelieved false: nothing is deleted for its age */
export async function applyRetention(
  database: PostgresDatabase,
  { maxCount, maxAgeSeconds, maxBytes }: RetentionLimits,
  isClockBelieved: boolean,
): Promise<void> {
  if (isClockBelieved) {
    const oldest = nowSeconds() - maxAgeSeconds;
    await repeat(() => deleteStep(database, () => old(oldest, step)));
    await deleteEvents(database);
  }
  await repeat(() => deleteStep(database, () => beyond(maxCount, row, step)));
  while ((await bytesOf(database)) > maxBytes)
    if (!(await deleteStep(database, () => oldestOfLargest(row, step)))) break;
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
    return isMine === true && (yield* deleteEntries(yield* find(), lockItems));
  });
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
