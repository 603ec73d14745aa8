/** A call for the client to run: of a function, whose arguments are JSON, or of a custom tool, whose input is text. */

import { CustomInput } from "../../body/custom-input.ts";
import type {
  CustomToolCallItem,
  FunctionCallItem,
  ItemStatus,
  UnnumberedEvent,
} from "../types.ts";
import { ItemEvents, toolCallCompleted, toolCallDelta } from "./item.ts";

export interface ClientCallStart {
  id: string;
  callId: string;
  name: string;
  namespace?: string | undefined;
}

const names = {
  function: "response.function_call_arguments",
  custom: "response.custom_tool_call_input",
} as const;

/** What a client waits for: the call is whole and may be run. */
export function isCallDone(type: string): boolean {
  return type === `${names.function}.done` || type === `${names.custom}.done`;
}

export class ClientCallEvents extends ItemEvents<FunctionCallItem | CustomToolCallItem> {
  readonly #extendedFor: string | null;
  readonly #kind: keyof typeof names;
  readonly #input = new CustomInput();
  #arguments = "";
  /** How much of the input was told before, and is read again. */
  #known = 0;

  /** @param extendedFor the response's id if its client asked for events that OpenAI's wire does not have, else null */
  constructor(
    kind: keyof typeof names,
    { id, callId, name, namespace }: ClientCallStart,
    outputIndex: number,
    extendedFor: string | null,
  ) {
    const call = { id, status: "in_progress" as const, call_id: callId, name };
    const place = namespace === undefined ? {} : { namespace };
    super(
      kind === "function"
        ? { ...call, type: "function_call", arguments: "", ...place }
        : { ...call, type: "custom_tool_call", input: "", ...place },
      outputIndex,
    );
    this.#kind = kind;
    this.#extendedFor = extendedFor;
  }

  /** Of a call that was told so far. One that is not whole goes on, a custom tool's with its arguments from the beginning. */
  static told(
    item: FunctionCallItem | CustomToolCallItem,
    outputIndex: number,
    extendedFor: string | null,
  ): ClientCallEvents {
    const { id, call_id: callId, name, namespace } = item;
    const kind = item.type === "function_call" ? "function" : "custom";
    const events = new ClientCallEvents(
      kind,
      { id, callId, name, namespace },
      outputIndex,
      extendedFor,
    );
    Object.assign(events.item, item);
    if (item.type === "function_call") events.#arguments = item.arguments;
    else events.#known = item.input.length;
    return events;
  }

  /** @param delta of the arguments, as the model writes them */
  delta(delta: string): UnnumberedEvent[] {
    this.#arguments += delta;
    return this.#tell(this.item.type === "function_call" ? delta : this.#input.add(delta));
  }

  /** The arguments are whole: the client may run the call. A function's call without any gets "{}". */
  completeArguments(): UnnumberedEvent[] {
    const { item } = this;
    const missing = this.#arguments === "" ? "{}" : "";
    const isFunction = item.type === "function_call";
    const rest = this.#tell(isFunction ? missing : this.#input.finish(this.#arguments));
    const whole = isFunction
      ? { name: item.name, arguments: item.arguments }
      : { input: item.input };
    return [
      ...rest,
      this.ownEvent(`${names[this.#kind]}.done`, whole),
      ...this.#extended(toolCallCompleted, { call_id: item.call_id }),
    ];
  }

  close(status: ItemStatus): UnnumberedEvent[] {
    return [this.done(status)];
  }

  /** @param read the new piece: the pieces, joined, are the arguments or the input */
  #tell(read: string): UnnumberedEvent[] {
    const delta = read.slice(this.#known);
    this.#known = Math.max(0, this.#known - read.length);
    if (delta === "") return [];
    const { item } = this;
    if (item.type === "function_call") item.arguments += delta;
    else item.input += delta;
    const { id, call_id, name } = item;
    return [
      ...this.#extended(toolCallDelta, { item_id: id, call_id, name, delta }),
      this.ownEvent(`${names[this.#kind]}.delta`, { delta }),
    ];
  }

  #extended(type: string, rest: object): UnnumberedEvent[] {
    if (this.#extendedFor === null) return [];
    return [{ type, response: { id: this.#extendedFor }, ...rest }];
  }
}
