/** The events of a background response from the store: all at once, or as another process writes them. */

import { setTimeout } from "node:timers/promises";
import type { OpenStore } from "../../../store/types.ts";
import { followStored } from "../../answer/shared-runs.ts";
import { fieldError } from "../../body/field.ts";
import type { ResponseObject, WireEvent } from "../types.ts";

const lastTypes = new Set(["response.completed", "response.incomplete", "response.failed"]);
/** The last events are stored after the response: that long, at most. */
const lastEventMs = 1000;
const lookMs = 50;

interface Stored {
  owner: string;
  id: string;
  store: OpenStore | null;
  /** As it is now. */
  response(): Promise<object>;
  /** Ends the events early. */
  viewer: AbortSignal;
}

/**
 * The events above `after`. If the response's process died, the last event is missing and is made here.
 * @throws FermataError not_found | invalid_value: they were not kept
 */
export async function storedEvents(
  stored: Stored,
  after: number,
): Promise<AsyncGenerator<WireEvent, void, void>> {
  const response = (await stored.response()) as { background?: boolean };
  if (response.background === true) return events(stored, after);
  const problem = "is only possible for responses that were created with background: true";
  throw fieldError("invalid_value", "stream", problem, "Retrieve the response without it");
}

async function* events(
  { owner, id, store, response, viewer }: Stored,
  after: number,
): AsyncGenerator<WireEvent, void, void> {
  const read = async (from: number): Promise<WireEvent[]> =>
    ((await store?.responses.events(owner, id, from)) ?? []) as WireEvent[];
  let told = after;
  let patienceMs = 0;
  const shared = store?.shared ?? null;
  if (shared !== null && (await shared.isAtWork(id))) {
    patienceMs = lastEventMs;
    for await (const event of followStored(id, shared, { read, numberOf, after, viewer })) {
      told = numberOf(event);
      yield event;
    }
    if (viewer.aborted) return;
  }
  let all = await read(-1);
  for (; patienceMs > 0 && !hasLast(all) && !viewer.aborted; patienceMs -= lookMs) {
    await setTimeout(lookMs);
    all = await read(-1);
  }
  if (viewer.aborted) return;
  for (const event of all) if (numberOf(event) > told) yield event;
  if (hasLast(all)) return;
  const now = (await response()) as ResponseObject;
  const type = `response.${now.status === "cancelled" ? "incomplete" : now.status}`;
  const number = Math.max(all.at(-1)?.sequence_number ?? -1, told) + 1;
  yield { type, sequence_number: number, response: now };
}

function hasLast(all: readonly WireEvent[]): boolean {
  return lastTypes.has(all.at(-1)?.type ?? "");
}

function numberOf({ sequence_number: number }: WireEvent): number {
  return number;
}
