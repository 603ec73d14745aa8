/**
 * Detects clients that lose part of the history: a call has no result, or an earlier call of this server is missing. A
 * model that does not see its calls repeats them.
 */

import type { FastifyBaseLogger } from "fastify";
import { RecentMap } from "../../recent-map.ts";
import type { ChatMessage } from "../../chat/types.ts";

export interface HistoryCall {
  id: string;
  hasResult: boolean;
}

/** The calls in a request's history. */
export interface ClientHistory {
  owner: string;
  /** Equal for requests of one conversation. Null: unknown. */
  conversationKey: string | null;
  /** In their order. */
  calls: readonly HistoryCall[];
}

interface IssuedCall {
  callId: string;
  /** The call before it in the same history. */
  before: IssuedCall | null;
}

export const historyGapHeader = "x-fermata-history-gap";

/** The least recently used are forgotten. */
const maxEntries = 10_000;
const maxReported = 16;
const maxIdLength = 100;

export class HistoryGaps {
  /** Calls that this server issued, and the last one of a conversation: by owner and id or key. */
  readonly #known = new RecentMap<string, IssuedCall>(maxEntries);

  /** Logs what is missing. @returns headers that name the calls; none when nothing is missing */
  report(history: ClientHistory, log: FastifyBaseLogger): Record<string, string> {
    const calls = this.#missingCalls(history);
    const results = history.calls.flatMap(({ id, hasResult }) => (hasResult ? [] : [id]));
    if (calls.length > 0)
      log.warn({ missing_calls: shown(calls) }, "the history lacks calls that were in it before");
    if (results.length > 0)
      log.warn({ missing_results: shown(results) }, "the history has calls without results");
    const ids = shown([...calls, ...results])
      .map(inHeader)
      .join(",");
    return ids === "" ? {} : { [historyGapHeader]: ids };
  }

  /** @param issued ids of the calls that the answer to `history` ended with */
  learn({ owner, conversationKey, calls }: ClientHistory, issued: readonly string[]): void {
    let last: IssuedCall | null = null;
    const isNew = new Set(issued);
    for (const callId of new Set([...calls.map(({ id }) => id), ...issued])) {
      const key = keyOf(owner, "call", callId);
      const known = this.#known.get(key);
      // Calls of other servers have ids that mean nothing outside of this history.
      if (known === undefined && !isNew.has(callId)) continue;
      last = known?.before === last ? known : { callId, before: last };
      this.#known.set(key, last);
    }
    if (conversationKey !== null && last !== null)
      this.#known.set(keyOf(owner, "key", conversationKey), last);
  }

  /** The oldest first. */
  #missingCalls({ owner, conversationKey, calls }: ClientHistory): string[] {
    const present = new Set(calls.map(({ id }) => id));
    const byCall = [...present].toReversed().map((id) => this.#known.get(keyOf(owner, "call", id)));
    const byKey =
      conversationKey === null ? undefined : this.#known.get(keyOf(owner, "key", conversationKey));
    const missing = new Set<string>();
    for (const start of [byCall.find((issued) => issued !== undefined), byKey]) {
      for (let call = start ?? null; call !== null; call = call.before) {
        if (!present.has(call.callId)) missing.add(call.callId);
      }
    }
    return [...missing].toReversed();
  }
}

export function callsOfMessages(messages: readonly ChatMessage[]): HistoryCall[] {
  const answered = new Set(
    messages.flatMap((message) => (message.role === "tool" ? [message.toolCallId] : [])),
  );
  return messages.flatMap((message) =>
    message.role === "assistant"
      ? (message.toolCalls ?? []).map(({ id }) => ({ id, hasResult: answered.has(id) }))
      : [],
  );
}

function shown(ids: readonly string[]): string[] {
  return ids.slice(0, maxReported).map((id) => id.slice(0, maxIdLength));
}

/** A client's call id may have characters that a header cannot have. */
function inHeader(callId: string): string {
  return callId.replaceAll(/[^\w.:~-]/g, "?");
}

function keyOf(owner: string, kind: "call" | "key", id: string): string {
  return `${owner} ${kind} ${id}`;
}
