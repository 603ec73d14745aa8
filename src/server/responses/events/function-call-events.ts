import type { FunctionCallItem, UnnumberedEvent } from "../types.ts";
import {
  type ClientCallStart,
  ExtendedCallEvents,
  toolCallCompleted,
  toolCallDelta,
} from "./extended-call-events.ts";
import { added, done, type ItemGrammar } from "./grammar.ts";

const argumentsDelta = "response.function_call_arguments.delta";
export const argumentsDone = "response.function_call_arguments.done";

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

/** A call for the client to run. */
export class FunctionCallEvents {
  readonly item: FunctionCallItem;
  readonly outputIndex: number;
  readonly #extended: ExtendedCallEvents;

  /** @param extendedFor the response's id if its client asked for extended events, else null */
  constructor(start: ClientCallStart, outputIndex: number, extendedFor: string | null) {
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
    this.#extended = new ExtendedCallEvents(extendedFor);
  }

  open(): UnnumberedEvent[] {
    return [this.#event(added, { item: { ...this.item } })];
  }

  delta(delta: string): UnnumberedEvent[] {
    this.item.arguments += delta;
    const standard = this.#event(argumentsDelta, { item_id: this.item.id, delta });
    return [...this.#extended.delta(this.item, delta), standard];
  }

  /** The arguments are whole: the client may run the call. A call without any gets "{}". */
  completeArguments(): UnnumberedEvent[] {
    const missing = this.item.arguments === "" ? this.delta("{}") : [];
    const { id, call_id, name, arguments: text } = this.item;
    const standard = this.#event(argumentsDone, { item_id: id, name, arguments: text });
    return [...missing, standard, ...this.#extended.completed(call_id)];
  }

  close(status: "completed" | "incomplete"): UnnumberedEvent[] {
    this.item.status = status;
    return [this.#event(done, { item: this.item })];
  }

  #event(type: string, rest: object): UnnumberedEvent {
    return { type, output_index: this.outputIndex, ...rest };
  }
}
