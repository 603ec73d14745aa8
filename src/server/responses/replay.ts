/** The events of a background response, told again from the store. */

import type { ResponseObject, WireEvent } from "./types.ts";

const lastTypes = new Set(["response.completed", "response.incomplete", "response.failed"]);

/**
 * Those numbered above `after`. One whose process died has no last event: it is told then.
 * @param events in order, from the first @param response as it is now
 */
export async function* replay(
  events: readonly WireEvent[],
  response: ResponseObject,
  after: number,
): AsyncGenerator<WireEvent, void, void> {
  for (const event of events) if (event.sequence_number > after) yield event;
  const last = events.at(-1);
  if (last !== undefined && lastTypes.has(last.type)) return;
  const { status } = response;
  const type = `response.${status === "cancelled" ? "incomplete" : status}`;
  const number = Math.max(last?.sequence_number ?? -1, after) + 1;
  yield { type, sequence_number: number, response };
}
