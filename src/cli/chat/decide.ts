/** A call that waits for a person's decision, asked at the terminal and sent to the server. */

import { setTimeout } from "node:timers/promises";
import { type Detail, StreamError } from "../../client/index.ts";
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

const maxAttempts = 10;
const longestWaitMs = 10_000;

/** @param over aborted when the run has ended @returns what the person must know; null: nothing */
export async function decide(
  api: ChatApi,
  asked: ApprovalAsked,
  { approve, resendMs = 500 }: Approver,
  over: AbortSignal,
): Promise<string | null> {
  let problem: string | undefined;
  for (;;) {
    const answer = await approve(asked, problem);
    try {
      await send(api, asked, answer, { over, resendMs });
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

/**
 * Again and again while the server cannot be reached or is not well. A decision that names its question answers no other one, so that one
 * that arrives twice does no harm; to an earlier Fermata, which names none, it is sent once.
 * @throws StreamError
 */
async function send(
  api: ChatApi,
  { call_id: callId, asking_id: askingId }: ApprovalAsked,
  answer: ApprovalAnswer,
  { over, resendMs }: { over: AbortSignal; resendMs: number },
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await api.decide(callId, { ...answer, asking_id: askingId });
    } catch (error) {
      const mayPass = error instanceof StreamError && mayComeRight(error.status);
      if (!mayPass || askingId === undefined || attempt === maxAttempts) throw error;
      await setTimeout(Math.min(longestWaitMs, resendMs * 2 ** (attempt - 1)), null, {
        signal: over,
      });
    }
  }
}

function mayComeRight(status: number): boolean {
  return status === 0 || status === 429 || status >= 500;
}

/** Somebody else has answered, the time is over, or the stream asks again. */
function isSettled(error: unknown): boolean {
  return !(error instanceof StreamError) || error.status === 404 || error.status === 409;
}
