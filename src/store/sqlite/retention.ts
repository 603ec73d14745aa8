/** Keeps the file within its limits. */

import { isOrphan } from "../items.ts";
import { beyond, deleteEntries, type Entry, old, oldestOfLargest } from "../retention.ts";
import type { StoreHost } from "../host.ts";
import { eventsSeconds, nowSeconds, type RetentionLimits } from "../retention-limits.ts";
import { column, run, sql, type Work } from "../sql.ts";

/** Entries that are looked for at once. */
const many = 1000;
/** Entries deleted in one step when the file is too large. */
const step = 10;

/** @param isClockBelieved false: nothing is deleted for its age */
export function* applyRetention(
  { maxCount, maxAgeSeconds, maxBytes }: RetentionLimits,
  { row, lockItems }: Pick<StoreHost, "row" | "lockItems">,
  isClockBelieved: boolean,
): Work<void> {
  const deleteAll = function* (find: () => Work<Entry[]>): Work<void> {
    while (yield* deleteEntries(yield* find(), lockItems));
  };
  if (isClockBelieved) {
    const oldest = nowSeconds() - maxAgeSeconds;
    yield* deleteAll(() => old(oldest, many));
    yield* deleteEvents();
  }
  yield* deleteAll(() => beyond(maxCount, row, many));
  yield* run(sql`DELETE FROM items WHERE ${isOrphan}`);
  while ((yield* bytes()) > maxBytes)
    if (!(yield* deleteEntries(yield* oldestOfLargest(row, step), lockItems))) break;
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

/** From the file's header: adding up the rows would read all of them. */
function* bytes(): Work<number> {
  const [pages, free, size] = [
    yield* column<number>(sql`PRAGMA page_count`),
    yield* column<number>(sql`PRAGMA freelist_count`),
    yield* column<number>(sql`PRAGMA page_size`),
  ];
  return (pages[0]! - free[0]!) * size[0]!;
}
