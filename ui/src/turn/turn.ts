/** An answer as the page shows it, from its events. Pure. */

import {
  callsWithin,
  type ConversationState,
  type ToolCallState,
} from "../../../src/client/conversation-state.ts";
import type { RunStatus, ToolCallProgress } from "../../../src/client/types.ts";

export {
  applyEvent,
  emptyState as emptyTurn,
  stateOfMessage,
} from "../../../src/client/conversation-state.ts";

export type Turn = ConversationState;
export type Call = ToolCallState;
/** `stopped`: the turn ended before the call did. */
export type CallState = ToolCallProgress | "stopped";

export function statusOf({ end }: Turn): RunStatus {
  return end?.status ?? "running";
}

export function callStateOf({ progress }: Call, turnEnded: boolean): CallState {
  const isOpen = progress === "writing" || progress === "approval" || progress === "running";
  return turnEnded && isOpen ? "stopped" : progress;
}

/** The sub-agent that a call delegates to. */
export function delegateOf({
  event_type: type,
  tool_name: name,
  tool_call_details: details,
}: Call) {
  const isDelegation = type === "delegation_call" || type === "delegation_result";
  return details.delegate ?? (isDelegation ? name : null);
}

/** The turn's own calls, or the calls of the sub-agent of `parent`. */
export const callsOf = callsWithin;
