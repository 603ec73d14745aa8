/** What the store keeps of a message, and what the wire shows of it. */

import type { ChatMessage } from "../../chat/types.ts";
import { type ConversationState, emptyState } from "../../client/conversation-state.ts";
import type {
  ConversationMessage,
  PhaseDetail,
  RunStatus,
  RunUsage,
  ToolCallResponse,
  WireError,
} from "../../client/types.ts";
import type { BranchedMessage } from "../../store/types.ts";
import type { AttachedFile } from "./run-request.ts";

export type UserBody = { role: "user"; message: string; files: AttachedFile[] };

export type AnswerBody = {
  role: "assistant";
  status: RunStatus;
  message: string;
  reasoning: string;
  citations: readonly string[];
  toolCalls: ToolCallResponse[];
  timeline: readonly PhaseDetail[];
  error: WireError | null;
  usage: RunUsage | null;
  /** What it adds to the prompt of the next run. */
  transcript: ChatMessage[];
};

export type MessageBody = UserBody | AnswerBody;

export interface Message extends BranchedMessage {
  body: MessageBody;
}

/** Null: the run goes on. */
export function answerBody(state: ConversationState, transcript: ChatMessage[]): AnswerBody {
  const { end, message, reasoning, citations, timeline } = state;
  return {
    role: "assistant",
    status: end?.status ?? "running",
    message,
    reasoning,
    citations,
    toolCalls: state.toolCalls
      .filter(({ progress }) => progress !== "writing")
      .map((call) => ({
        call_id: call.call_id,
        event_type: call.event_type,
        tool_name: call.tool_name,
        tool_response: call.is_streaming ? call.content : call.tool_response,
        tool_call_details: call.tool_call_details,
        is_complete: call.is_complete,
      })),
    timeline,
    error: end?.error ?? null,
    usage: end?.usage ?? null,
    transcript,
  };
}

export const newAnswer = answerBody(emptyState, []);

export function wireMessage({
  id,
  parentId,
  runId,
  createdAt,
  body,
}: Message): ConversationMessage {
  const answer: AnswerBody =
    body.role === "assistant" ? body : { ...newAnswer, status: "complete" };
  const files = body.role === "user" ? body.files : [];
  return {
    id,
    parent_id: parentId,
    role: body.role,
    message: body.message,
    files: files.map(({ name, text }) => ({ name, characters: text.length })),
    reasoning: answer.reasoning,
    citations: [...answer.citations],
    tool_calls: answer.toolCalls,
    status: answer.status,
    error: answer.error,
    run_id: runId,
    created_at: Math.floor(createdAt / 1000),
    usage: answer.usage,
    timeline: [...answer.timeline],
  };
}
