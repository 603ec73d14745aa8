/** A run's calls of tools: in a line, and how those that are open end when nothing more comes. */

import { exactJson, isJsonObject, parseExactJson } from "../../json.ts";
import type { ConversationState, ToolCallState } from "../../client/conversation-state.ts";
import type {
  ConversationEvent,
  EndDetail,
  ToolCallDetails,
  ToolCallResponse,
} from "../../client/types.ts";

/** A call that was told of and has no result yet. */
export interface CallProgress {
  id: string;
  toolName: string;
  isDelegation: boolean;
  details: ToolCallDetails;
  /** The parts of the result that went out, joined; null: none did. */
  streamed: string | null;
}

/** A speaker: the run itself, or the sub-agent that works on the delegation `parent`. */
export interface Speaker {
  agent?: string;
  parent?: string;
  /** Calls that the model is writing, by their index in the round. */
  writing: Map<number, { id: string; toolName: string }>;
  /** Ids on the wire of its calls by the ids that it gave them. */
  ids: Map<string, string>;
}

/** A call in the stream that has no result yet. */
export interface OpenCall extends CallProgress {
  speaker: Speaker;
}

export function emptyEvent(): Required<ConversationEvent> {
  return { message: "", citations: [], tool_calls: [], details: [] };
}

export function nesting({ agent, parent }: Speaker): { agent?: string; parent_call_id?: string } {
  return parent === undefined ? {} : { agent: agent!, parent_call_id: parent };
}

export function interruption(status: EndDetail["status"]): string {
  if (status === "cancelled") return "The run was cancelled.";
  return "The run ended before the call did.";
}

/** What came of the result stays; the error says that it is not all. */
export function interruptedCall(call: CallProgress, reason: string): ToolCallResponse {
  const { id, toolName, isDelegation, streamed, details } = call;
  return {
    call_id: id,
    event_type: isDelegation ? "delegation_result" : "result",
    tool_name: toolName,
    tool_response: streamed ?? "",
    tool_call_details: { ...details, error: reason },
    ...(isDelegation || streamed !== null ? { stream_part: "" } : {}),
    is_complete: true,
  };
}

/** The last event of a run of which nothing is left but what its events told. */
export function interruptedEnd(
  state: ConversationState,
  end: Omit<EndDetail, "type">,
): ConversationEvent {
  const open = state.toolCalls.filter(({ progress }) => openStates.has(progress));
  const reason = end.error?.message ?? interruption(end.status);
  return {
    message: "",
    citations: [],
    tool_calls: open
      .filter(({ progress }) => progress !== "writing")
      .map((call) => interruptedCall(progressOf(call), reason))
      .reverse(),
    details: [
      ...open.map(({ call_id: id }) => ({
        type: "state" as const,
        call_id: id,
        state: "failed" as const,
      })),
      { type: "end", ...end },
    ],
  };
}

const openStates = new Set<ToolCallState["progress"]>(["writing", "approval", "running"]);

/** An open call as its events told it. */
export function progressOf(call: ToolCallState): CallProgress {
  return {
    id: call.call_id,
    toolName: call.tool_name,
    isDelegation: call.event_type.startsWith("delegation"),
    details: call.tool_call_details,
    streamed: call.is_streaming ? call.content : null,
  };
}

const maxLength = 200;
const maxValueLength = 60;

/** `get_weather(location: "Tokyo")`. Arguments that are no JSON stand as they are. */
export function callSummary(name: string, args: string): string {
  const value = parseExactJson(args);
  const text = isJsonObject(value)
    ? Object.entries(value)
        .map(([key, entry]) => `${key}: ${shorten(exactJson(entry), maxValueLength)}`)
        .join(", ")
    : args;
  return shorten(`${name}(${text})`, maxLength);
}

/** Whole characters: half of a pair would be no text. */
function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  return `${text.slice(0, length - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
