/** A call that waits for a person's decision, asked at the terminal and sent to the server. */

import { type Detail, sendDecision, StreamError } from "../../client/index.ts";
import type { ChatApi } from "./connect.ts";

export type ApprovalAsked = Extract<Detail, { type: "approval" }>;

export interface ApprovalAnswer {
  decision: "approve" | "deny" | "cancel";
  /** For the model. */
  reason?: string;
  /** To a question. */
  content?: Record<string, unknown>;
}

export interface Approver {
  /** `problem`: why the answer before was refused. */
  approve(asked: ApprovalAsked, problem?: string): Promise<ApprovalAnswer>;
  /** Before a decision that did not reach the server is sent again; then twice as long each time. Default: 500. */
  resendMs?: number;
}

/** @param over aborted when the run has ended @returns what the person must know; null: nothing */
export async function decide(
  api: ChatApi,
  asked: ApprovalAsked,
  { approve, resendMs = 500 }: Approver,
  over: AbortSignal,
): Promise<string | null> {
  const { call_id: callId, asking_id: askingId } = asked;
  let problem: string | undefined;
  for (;;) {
    const answer = await approve(asked, problem);
    try {
      await sendDecision(
        askingId ?? null,
        () => api.decide(callId, { ...answer, asking_id: askingId }),
        { signal: over, firstWaitMs: resendMs },
      );
      return null;
    } catch (error) {
      if (over.aborted || isSettled(error)) return null;
      const { message, status } = error as StreamError;
      if (status !== 400)
        return `Your answer about ${asked.tool_name} did not reach the server: ${message} Open the conversation again to answer.`;
      problem = message;
    }
  }
}

/** Somebody else has answered, the time is over, or the stream asks again. */
function isSettled(error: unknown): boolean {
  return !(error instanceof StreamError) || error.status === 404 || error.status === 409;
}
