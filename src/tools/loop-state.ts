/** The tool loop's states, and the one function that returns the next state. */

import type { ToolLogger } from "../chat/types.ts";
import type { ChatEvent, ToolCall, ToolOutput } from "../chat/types.ts";
import type { LoopBudget } from "./loop-budget.ts";
import type { ToolRoundLimits } from "./tool-round.ts";

export type LoopState = {
  /** The answer has text. */
  hasText: boolean;
} & (
  | { at: "turn"; /** Calls of the turn whose arguments are complete. */ closed: ToolCall[] }
  /** The sequence is held while `own` of its calls run. */
  | { at: "round"; calls: readonly ToolCall[]; own: ToolCall[]; limits: ToolRoundLimits }
  /** The model made calls beyond its limits, and its generation is cancelled. */
  | { at: "cut" }
  | { at: "end" }
);

/** An event of the chat, or the end of a round. */
export type LoopInput = ChatEvent | { type: "outputs"; outputs: ToolOutput[] };

export type LoopAction =
  | { do: "tell"; event: ChatEvent }
  | { do: "start-early"; call: ToolCall }
  /** Early calls are cancelled, and their results are dropped. */
  | { do: "drop-early" }
  /** `mayCall` false: only tools of the client may be called. `say`: words of the user behind the results. */
  | { do: "resume"; outputs: ToolOutput[]; mayCall: boolean; say: string | undefined }
  | { do: "release" }
  | { do: "cancel" };

export interface LoopRules {
  budget: LoopBudget;
  maxCalls: number | undefined;
  /** The answer is a document, so the loop may not add words to it. */
  hasForm: boolean;
  /** Nobody reads the events any more. */
  signal: AbortSignal;
  logger: ToolLogger | undefined;
  /** Fermata runs the call. */
  isOwn(call: ToolCall): boolean;
  /** Its tool changes nothing and needs no approval. */
  mayStartEarly(call: ToolCall): boolean;
}

export interface LoopStep {
  state: LoopState;
  /** In this order. */
  actions: LoopAction[];
}

export const firstState: LoopState = { at: "turn", closed: [], hasText: false };

export function nextStep(state: LoopState, input: LoopInput, rules: LoopRules): LoopStep {
  if (input.type === "finish") return finishStep(state, input, rules);
  if (state.at === "cut") return { state, actions: [] };
  if (input.type === "outputs") return outputsStep(state, input.outputs, rules);
  if (input.type === "hold") return holdStep(state, input, rules);
  if (input.type === "call-end") return callStep(state, input, rules);
  const hasText = state.hasText || (input.type === "content" && input.text.trim() !== "");
  return { state: { ...state, hasText }, actions: [tell(input)] };
}

function callStep(
  state: LoopState,
  event: Extract<ChatEvent, { type: "call-end" }>,
  { budget, isOwn, mayStartEarly }: LoopRules,
): LoopStep {
  const { call } = event;
  const closed = [...(state.at === "turn" ? state.closed : []), call];
  const isEarly =
    isOwn(call) && mayStartEarly(call) && budget.mayStart(closed, closed.filter(isOwn).length);
  const actions = [tell(event)];
  if (isEarly) actions.unshift({ do: "start-early", call });
  return { state: { at: "turn", closed, hasText: state.hasText }, actions };
}

function holdStep(
  { hasText }: LoopState,
  event: Extract<ChatEvent, { type: "hold" }>,
  { budget, isOwn, maxCalls, logger }: LoopRules,
): LoopStep {
  const { calls } = event;
  if (calls.length === 0) {
    const say = budget.endRepetition();
    const resume: LoopAction = { do: "resume", outputs: [], mayCall: false, say };
    return { state: { at: "turn", closed: [], hasText }, actions: [tell(event), resume] };
  }
  const own = calls.filter(isOwn);
  const names = own.map((call) => call.name);
  if (budget.reached !== null && own.length > 0) {
    // Without masks nothing prevents more calls.
    logger?.warn({ calls: names }, "the model calls tools beyond its limits: not run");
    return { state: { at: "cut", hasText }, actions: [{ do: "cancel" }] };
  }
  const { room, refusal } = budget.judge(calls, own.length, event.usage.generatedTokens);
  if (budget.reached !== null)
    logger?.warn(
      { calls: names, why: budget.reached },
      "a limit is reached: the model answers without tools",
    );
  else if (refusal !== undefined) logger?.warn({ why: refusal }, "calls are not run");
  const limits = { room, maxCalls, refusal };
  return { state: { at: "round", calls, own, limits, hasText }, actions: [tell(event)] };
}

function outputsStep(state: LoopState, outputs: ToolOutput[], rules: LoopRules): LoopStep {
  const { budget, signal } = rules;
  const next: LoopState = { at: "turn", closed: [], hasText: state.hasText };
  // The generation was cancelled too, and its end comes as an event.
  if (signal.aborted) return { state: next, actions: [] };
  if (state.at === "round" && state.own.length < state.calls.length)
    return { state: next, actions: [{ do: "release" }] };
  const say = budget.close(outputs);
  return {
    state: next,
    actions: [{ do: "resume", outputs, mayCall: budget.reached === null, say }],
  };
}

function finishStep(
  state: LoopState,
  finish: Extract<ChatEvent, { type: "finish" }>,
  { budget, hasForm }: LoopRules,
): LoopStep {
  const { hasText } = state;
  const isCut = state.at === "cut";
  const isAborted = finish.reason === "cancelled" && !isCut;
  const events =
    budget.reached === null || isAborted
      ? [finish]
      : finishAtLimit(finish, { limit: budget.reached, isCut, hasText, hasForm });
  return { state: { at: "end", hasText }, actions: [{ do: "drop-early" }, ...events.map(tell)] };
}

/** An answer after a limit ends with a notice, unless it is a document. */
function finishAtLimit(
  finish: Extract<ChatEvent, { type: "finish" }>,
  answer: { limit: string; isCut: boolean; hasText: boolean; hasForm: boolean },
): ChatEvent[] {
  const { limit, isCut, hasText, hasForm } = answer;
  const notice = `No more tools were called: ${limit} is reached.`;
  const end = { ...finish, warnings: [...(finish.warnings ?? []), notice] };
  if (hasForm) return [isCut ? { ...end, reason: "length", calls: [], problem: notice } : end];
  const text = `${hasText ? "\n\n" : ""}[${notice}]`;
  const words: ChatEvent[] = finish.calls.length === 0 ? [{ type: "content", text }] : [];
  return [...words, isCut ? { ...end, reason: "stop", calls: [] } : end];
}

function tell(event: ChatEvent): LoopAction {
  return { do: "tell", event };
}
