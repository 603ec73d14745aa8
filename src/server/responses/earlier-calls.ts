/** Calls that the previous response left open: the new turn closes them. */

import type { ResponseStore } from "../../store/types.ts";
import { isClientCall } from "./client-calls.ts";
import { done } from "./events/grammar.ts";
import { toolCallCompleted } from "./events/extended-call-events.ts";
import type { Item, UnnumberedEvent } from "./types.ts";
import type { EventLog } from "./event-log.ts";

export interface EarlierContext {
  previous: string | null;
  owner: string;
  store: ResponseStore | null;
  log: EventLog;
}

/** Closes them in the store and in the log. @returns the events that say so, for clients that want them */
export async function closeEarlierCalls(
  items: readonly Item[],
  { previous, owner, store, log }: EarlierContext,
): Promise<UnnumberedEvent[]> {
  if (previous === null) return [];
  const events: UnnumberedEvent[] = [];
  for (const item of items) {
    if (!isClientCall(item) || item.status !== "in_progress") continue;
    item.status = "completed";
    await store?.updateItem(owner, { ...item });
    const callId = item.call_id;
    log.closedEarlier(previous, callId);
    const response = { id: previous };
    events.push({ type: toolCallCompleted, response, call_id: callId });
    events.push({ type: done, response, output_index: 0, item });
  }
  return events;
}
