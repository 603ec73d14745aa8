/** One run, watched: events to a printer, approvals to a person, a stop to the server. */

import type { ConversationState, Detail } from "../../client/index.ts";
import type { AnswerPrinter } from "./answer-printer.ts";
import type { ChatApi } from "./chat-api.ts";

export type ApprovalAsked = Extract<Detail, { type: "approval" }>;

export interface Watcher {
  printer: AnswerPrinter;
  /** True lets the call run. A string denies it and says why. */
  approve(asked: ApprovalAsked): Promise<true | string>;
  /** Stops the run once it is aborted; its last events are still read. */
  stop: AbortSignal;
  /** Leaves at once: the run goes on without a viewer. */
  leave: AbortSignal;
}

/** Resolves to what the run came to. @throws StreamError, or the reason of `leave` */
export async function watchRun(
  api: ChatApi,
  conversationId: string,
  runId: string,
  { printer, approve, stop, leave }: Watcher,
): Promise<ConversationState> {
  const cancel = (): void => void api.cancel(conversationId, runId).catch(() => {});
  if (stop.aborted) cancel();
  stop.addEventListener("abort", cancel, { once: true });
  const asked = new Set<string>();
  // A call that waits holds its own branch only: others are shown meanwhile.
  let questions = Promise.resolve();
  try {
    for await (const { event } of api.events(conversationId, runId, leave)) {
      printer.apply(event);
      for (const detail of event.details ?? []) {
        if (detail.type !== "approval" || detail.state !== "asked") continue;
        if (asked.has(detail.call_id)) continue;
        asked.add(detail.call_id);
        questions = questions.then(() => decide(api, detail, approve));
      }
    }
  } finally {
    stop.removeEventListener("abort", cancel);
  }
  printer.end();
  return printer.state;
}

/** Somebody else may have answered, or the time was over: then there is nothing to decide. */
async function decide(
  api: ChatApi,
  asked: ApprovalAsked,
  approve: Watcher["approve"],
): Promise<void> {
  const answer = await approve(asked);
  const [decision, reason] =
    answer === true ? (["approve", undefined] as const) : (["deny", answer] as const);
  await api.decide(asked.call_id, decision, reason || undefined).catch(() => {});
}
