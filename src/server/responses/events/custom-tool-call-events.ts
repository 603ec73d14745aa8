import { CustomInput } from "../custom-input.ts";
import type { CustomToolCallItem, UnnumberedEvent } from "../types.ts";
import {
  type ClientCallStart,
  ExtendedCallEvents,
  toolCallCompleted,
  toolCallDelta,
} from "./extended-call-events.ts";
import { added, done, type ItemGrammar } from "./grammar.ts";

const inputDelta = "response.custom_tool_call_input.delta";
export const inputDone = "response.custom_tool_call_input.done";

/** Input that was cut has no end: the item is done without it, as incomplete. */
export const customToolCallGrammar: ItemGrammar = {
  item: "custom_tool_call",
  follows: {
    [added]: [toolCallDelta, inputDelta, inputDone, done],
    [toolCallDelta]: [inputDelta],
    [inputDelta]: [toolCallDelta, inputDelta, inputDone, done],
    [inputDone]: [toolCallCompleted, done],
    [toolCallCompleted]: [done],
  },
};

/** A call of a custom tool, for the client to run. */
export class CustomToolCallEvents {
  readonly item: CustomToolCallItem;
  readonly outputIndex: number;
  readonly #extended: ExtendedCallEvents;
  readonly #input = new CustomInput();
  #arguments = "";

  /** @param extendedFor the response's id if its client asked for extended events, else null */
  constructor(start: ClientCallStart, outputIndex: number, extendedFor: string | null) {
    const { id, callId, name, namespace } = start;
    this.item = {
      id,
      type: "custom_tool_call",
      status: "in_progress",
      call_id: callId,
      name,
      input: "",
      ...(namespace === undefined ? {} : { namespace }),
    };
    this.outputIndex = outputIndex;
    this.#extended = new ExtendedCallEvents(extendedFor);
  }

  open(): UnnumberedEvent[] {
    return [this.#event(added, { item: { ...this.item } })];
  }

  /** @param delta of the arguments, as the model writes them */
  delta(delta: string): UnnumberedEvent[] {
    this.#arguments += delta;
    return this.#tell(this.#input.add(delta));
  }

  completeArguments(): UnnumberedEvent[] {
    const rest = this.#tell(this.#input.finish(this.#arguments));
    const { id, call_id, input } = this.item;
    return [
      ...rest,
      this.#event(inputDone, { item_id: id, input }),
      ...this.#extended.completed(call_id),
    ];
  }

  close(status: "completed" | "incomplete"): UnnumberedEvent[] {
    this.item.status = status;
    return [this.#event(done, { item: this.item })];
  }

  #tell(delta: string): UnnumberedEvent[] {
    if (delta === "") return [];
    this.item.input += delta;
    const standard = this.#event(inputDelta, { item_id: this.item.id, delta });
    return [...this.#extended.delta(this.item, delta), standard];
  }

  #event(type: string, rest: object): UnnumberedEvent {
    return { type, output_index: this.outputIndex, ...rest };
  }
}
