/**
 * Notices a client that drops turns: a request has a call that this server issued, and lacks a call
 * that was there when it was issued. A model that does not see its earlier calls makes them again.
 */

import { isClientCall } from "../openai/responses/client-calls.ts";
import type { Item } from "../openai/responses/types.ts";

interface IssuedCall {
  callId: string;
  /** The call before it in the same history. */
  before: IssuedCall | null;
}

/** The least recently used are forgotten. */
const maxEntries = 10_000;
const maxReported = 16;

export class HistoryGaps {
  /** The last call of a history, by owner and call id or prompt cache key. */
  readonly #known = new Map<string, IssuedCall>();

  /** Call ids that are missing from `items`, the oldest first; not more than a few. */
  find(owner: string, promptCacheKey: string | null, items: readonly Item[]): string[] {
    const present = new Set(callIds(items));
    const last = [...present].toReversed().map((id) => this.#known.get(keyOf(owner, "call", id)));
    const byCall = last.find((issued) => issued !== undefined);
    const byKey =
      promptCacheKey === null ? undefined : this.#known.get(keyOf(owner, "key", promptCacheKey));
    const missing = new Set<string>();
    for (const start of [byCall, byKey]) {
      for (let call = start ?? null; call !== null; call = call.before) {
        if (!present.has(call.callId)) missing.add(call.callId);
      }
    }
    return [...missing].toReversed().slice(0, maxReported);
  }

  /** @param items the whole history with what was said now */
  learn(owner: string, promptCacheKey: string | null, items: readonly Item[]): void {
    let last: IssuedCall | null = null;
    let previousId: string | undefined;
    for (const callId of callIds(items)) {
      const key = keyOf(owner, "call", callId);
      const known: IssuedCall | undefined = this.#known.get(key);
      const isSame = known !== undefined && known.before?.callId === previousId;
      last = isSame ? known : { callId, before: last };
      previousId = callId;
      this.#remember(key, last);
    }
    if (promptCacheKey !== null && last !== null)
      this.#remember(keyOf(owner, "key", promptCacheKey), last);
  }

  #remember(key: string, call: IssuedCall): void {
    this.#known.delete(key);
    this.#known.set(key, call);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= maxEntries) break;
      this.#known.delete(oldest);
    }
  }
}

function callIds(items: readonly Item[]): string[] {
  return items.flatMap((item) => (isClientCall(item) ? [item.call_id] : []));
}

function keyOf(owner: string, kind: "call" | "key", id: string): string {
  return `${owner} ${kind} ${id}`;
}
