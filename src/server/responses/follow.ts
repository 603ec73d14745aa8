/** A response's events on their way to its client, and who else is told of them. */

import type { ResponseStore } from "../../store/types.ts";
import { isClientCall } from "./client-calls.ts";
import { inputDone } from "./events/custom-tool-call-events.ts";
import { argumentsDone } from "./events/function-call-events.ts";
import type { Item, WireEvent } from "./types.ts";
import type { EventLog } from "./event-log.ts";
import type { HeldCalls } from "./held-calls.ts";
import type { LiveResponse } from "./live-response.ts";
import type { RequestedServers } from "./requested-servers.ts";

export interface Followers {
  live: LiveResponse;
  eventLog: EventLog;
  held: HeldCalls | null;
  /** Closed at the end. */
  requested: RequestedServers;
  /** Keeps the events, each before anyone is told of it; null: they are not kept. */
  store: ResponseStore | null;
  /** The client is asked for its consent. */
  onAsked(request: Item): void;
}

export async function* follow(
  events: AsyncGenerator<WireEvent, void, void>,
  { live, eventLog, held, requested, store, onAsked }: Followers,
): AsyncGenerator<WireEvent, void, void> {
  try {
    for await (const event of events) {
      eventLog.write(event);
      if (event.type === argumentsDone || event.type === inputDone)
        held?.announce(callIdOf(live, event));
      const item = event.type === "response.output_item.done" ? (event["item"] as Item) : null;
      if (item?.type === "mcp_approval_request") onAsked(item);
      if (store !== null) {
        await store.addEvent(live.id, event.sequence_number, event);
        live.append(event);
      }
      yield event;
    }
  } finally {
    live.finish();
    await requested.close();
  }
}

function callIdOf(live: LiveResponse, event: WireEvent): string {
  const item = live.response.output.find(({ id }) => id === event["item_id"]);
  return item !== undefined && isClientCall(item) ? item.call_id : "";
}
