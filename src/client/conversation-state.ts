/** What the events of a run add up to. Pure: each event gives a new state, the old one stays as it was. */

import type {
  ConversationEvent,
  ConversationMessage,
  Detail,
  EndDetail,
  PhaseDetail,
  Question,
  ToolCallDetails,
  ToolCallEventType,
  ToolCallProgress,
  ToolCallResponse,
} from "./types.ts";

export interface ToolCallState {
  call_id: string;
  /** Of the last event: a delegation becomes a `delegation_result` with its first part. */
  event_type: ToolCallEventType;
  tool_name: string;
  /** What came of the result so far. */
  content: string;
  /** The whole result; empty until it is complete. */
  tool_response: string;
  tool_call_details: ToolCallDetails;
  is_complete: boolean;
  is_streaming: boolean;

  // What follows needs `details=1`, but for what the events themselves tell.
  /** JSON text, as far as it is written. */
  arguments: string;
  progress: ToolCallProgress;
  /** What the tool last said of itself. */
  status: { message?: string; progress?: number; total?: number } | null;
  milliseconds: number | null;
  /** What its server last asked the person. */
  question: Question | null;
  /** Of what a person was last asked: the decision names it. */
  asking_id: string | null;
  /** The server ended while the call ran, and asks whether it runs again. */
  may_have_run: boolean;
  /** What the sub-agent of a delegation thinks. */
  reasoning: string;
}

export interface ConversationState {
  message: string;
  reasoning: string;
  citations: readonly string[];
  /** In the order in which they were first told of. */
  toolCalls: readonly ToolCallState[];
  timeline: readonly PhaseDetail[];
  /** Null while it runs, and always without `details=1`. */
  end: EndDetail | null;
}

export const emptyState: ConversationState = {
  message: "",
  reasoning: "",
  citations: [],
  toolCalls: [],
  timeline: [],
  end: null,
};

export function applyEvent(state: ConversationState, event: ConversationEvent): ConversationState {
  let next = state;
  // Arguments come before the call that they belong to.
  for (const detail of event.details ?? []) next = applyDetail(next, detail);
  if (event.message !== "") next = { ...next, message: next.message + event.message };
  if (event.citations.length > 0) next = { ...next, citations: union(next, event.citations) };
  for (const call of event.tool_calls) next = applyCall(next, call);
  return next;
}

/** The state that a stored message had when its run ended, or has until now. */
export function stateOfMessage(message: ConversationMessage): ConversationState {
  const { status, error, usage } = message;
  const end: EndDetail | null =
    status === "running"
      ? null
      : { type: "end", status, ...(error && { error }), ...(usage && { usage }) };
  const state: ConversationState = {
    ...emptyState,
    message: message.message,
    reasoning: message.reasoning,
    citations: message.citations,
    timeline: message.timeline,
    end,
  };
  return message.tool_calls.reduce(applyCall, state);
}

/** The calls of the run itself, or those that the sub-agent of `parent` made. */
export function callsWithin(state: ConversationState, parent: string | null): ToolCallState[] {
  return state.toolCalls.filter(
    (call) => (call.tool_call_details.parent_call_id ?? null) === parent,
  );
}

function applyCall(state: ConversationState, response: ToolCallResponse): ConversationState {
  return updateCall(state, response.call_id, response.tool_name, (call) => {
    const { stream_part: part, tool_response: whole, is_complete: isComplete } = response;
    const isStreamed = part !== undefined && part !== null;
    const isResult =
      response.event_type === "result" || response.event_type === "delegation_result";
    const details = { ...call.tool_call_details, ...response.tool_call_details };
    return {
      ...call,
      event_type: response.event_type,
      tool_name: response.tool_name,
      content: isStreamed ? call.content + part : whole,
      tool_response: whole !== "" || !isStreamed ? whole : call.tool_response,
      tool_call_details: details,
      is_complete: isComplete,
      is_streaming: !isComplete,
      arguments: details.arguments ?? call.arguments,
      progress: progressOf(call, isResult && isComplete, details),
      milliseconds: details.milliseconds ?? call.milliseconds,
    };
  });
}

function progressOf(
  call: ToolCallState,
  hasEnded: boolean,
  { approval, error }: ToolCallDetails,
): ToolCallProgress {
  if (!hasEnded) return call.progress === "writing" ? "running" : call.progress;
  if (approval === "denied") return "denied";
  return error === undefined ? "done" : "failed";
}

function applyDetail(state: ConversationState, detail: Detail): ConversationState {
  switch (detail.type) {
    case "reasoning": {
      const parent = detail.parent_call_id;
      if (parent === undefined) return { ...state, reasoning: state.reasoning + detail.text };
      return updateCall(state, parent, "", (call) => ({
        ...call,
        reasoning: call.reasoning + detail.text,
      }));
    }
    case "arguments": {
      const { agent, parent_call_id: parent } = detail;
      return updateCall(state, detail.call_id, detail.tool_name, (call) => ({
        ...call,
        arguments: call.arguments + detail.delta,
        tool_call_details: {
          ...call.tool_call_details,
          ...(agent === undefined ? {} : { agent }),
          ...(parent === undefined ? {} : { parent_call_id: parent }),
        },
      }));
    }
    case "state":
      return updateCall(state, detail.call_id, "", (call) => ({
        ...call,
        progress: detail.state,
        milliseconds: detail.milliseconds ?? call.milliseconds,
      }));
    case "progress": {
      const { type: _type, call_id: id, ...status } = detail;
      return updateCall(state, id, "", (call) => ({ ...call, status }));
    }
    case "approval":
      return updateCall(state, detail.call_id, detail.tool_name, (call) => ({
        ...call,
        arguments: detail.arguments,
        question: detail.question ?? null,
        ...(detail.state === "asked" && {
          asking_id: detail.asking_id ?? null,
          may_have_run: detail.may_have_run ?? false,
        }),
      }));
    case "phase":
      return { ...state, timeline: [...state.timeline, detail] };
    case "end":
      return { ...state, end: detail };
  }
}

function updateCall(
  state: ConversationState,
  id: string,
  toolName: string,
  update: (call: ToolCallState) => ToolCallState,
): ConversationState {
  const index = state.toolCalls.findIndex((call) => call.call_id === id);
  const toolCalls = [...state.toolCalls];
  if (index < 0) toolCalls.push(placed(state, update(newCall(id, toolName))));
  else toolCalls[index] = update(toolCalls[index]!);
  return { ...state, toolCalls };
}

/** A new call stands behind what its speaker said before it, unless the server says where. */
function placed({ message, toolCalls }: ConversationState, call: ToolCallState): ToolCallState {
  const { parent_call_id: parent } = call.tool_call_details;
  const text = toolCalls.find((each) => each.call_id === parent)?.content ?? message;
  return { ...call, tool_call_details: { text_offset: text.length, ...call.tool_call_details } };
}

function newCall(id: string, toolName: string): ToolCallState {
  return {
    call_id: id,
    event_type: "call",
    tool_name: toolName,
    content: "",
    tool_response: "",
    tool_call_details: {},
    is_complete: false,
    is_streaming: false,
    arguments: "",
    progress: "writing",
    status: null,
    milliseconds: null,
    question: null,
    asking_id: null,
    may_have_run: false,
    reasoning: "",
  };
}

function union({ citations }: ConversationState, added: readonly string[]): string[] {
  return [...new Set([...citations, ...added])];
}
