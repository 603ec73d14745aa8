import type { FunctionCallItem, UnnumberedEvent } from "../types.ts";
import { added, done, type ItemGrammar } from "./grammar.ts";

const argumentsDelta = "response.function_call_arguments.delta";
const argumentsDone = "response.function_call_arguments.done";
/** Not OpenAI's: sent only to clients that asked for extended events. */
export const toolCallDelta = "response.tool_call.delta";
export const toolCallCompleted = "response.tool_call.completed";

/** Arguments that were cut have no end: the item is done without them, as incomplete. */
export const functionCallGrammar: ItemGrammar = {
  item: "function_call",
  follows: {
    [added]: [toolCallDelta, argumentsDelta, done],
    [toolCallDelta]: [argumentsDelta],
    [argumentsDelta]: [toolCallDelta, argumentsDelta, argumentsDone, done],
    [argumentsDone]: [toolCallCompleted, done],
    [toolCallCompleted]: [done],
  },
};

export interface FunctionCallStart {
  id: string;
  callId: string;
  name: string;
  namespace?: string | undefined;
}

/** A call for the client to run. */
export class FunctionCallEvents {
  readonly item: FunctionCallItem;
  readonly outputIndex: number;
  readonly #extendedFor: string | null;

  /** @param extendedFor the response's id if its client asked for extended events, else null */
  constructor(start: FunctionCallStart, outputIndex: number, extendedFor: string | null) {
    const { id, callId, name, namespace } = start;
    this.item = {
      id,
      type: "function_call",
      status: "in_progress",
      call_id: callId,
      name,
      arguments: "",
      ...(namespace === undefined ? {} : { namespace }),
    };
    this.outputIndex = outputIndex;
    this.#extendedFor = extendedFor;
  }

  open(): UnnumberedEvent[] {
    return [this.#event(added, { item: { ...this.item } })];
  }

  delta(delta: string): UnnumberedEvent[] {
    this.item.arguments += delta;
    const standard = this.#event(argumentsDelta, { item_id: this.item.id, delta });
    return [...this.#extended(toolCallDelta, { delta: accumulated(this.item) }), standard];
  }

  /** The arguments are whole: the client may run the call. A call without any gets "{}". */
  completeArguments(): UnnumberedEvent[] {
    const missing = this.item.arguments === "" ? this.delta("{}") : [];
    const { id, call_id, name, arguments: text } = this.item;
    const standard = this.#event(argumentsDone, { item_id: id, name, arguments: text });
    return [...missing, standard, ...this.#extended(toolCallCompleted, { call_id })];
  }

  close(status: "completed" | "incomplete"): UnnumberedEvent[] {
    this.item.status = status;
    return [this.#event(done, { item: this.item })];
  }

  #extended(type: string, rest: object): UnnumberedEvent[] {
    if (this.#extendedFor === null) return [];
    return [{ type, response: { id: this.#extendedFor }, ...rest }];
  }

  #event(type: string, rest: object): UnnumberedEvent {
    return { type, output_index: this.outputIndex, ...rest };
  }
}

/** The delta is a string for clients that parse it as one: all arguments so far, not the new piece. */
function accumulated({ call_id, name, arguments: text }: FunctionCallItem): string {
  const call = { type: "tool_call", id: call_id, call_id, name, arguments: text };
  return JSON.stringify([{ ...call, status: "in_progress" }]);
}
