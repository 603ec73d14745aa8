/** Numbers a stream's events and holds them to their order: one that may not come is a fault of ours. */

import { FermataError } from "../../../errors.ts";
import type { UnnumberedEvent, WireEvent } from "../types.ts";

export const added = "response.output_item.added";
export const done = "response.output_item.done";

export const partAdded = "response.content_part.added";
export const partDone = "response.content_part.done";

/** Sent only to clients that asked for events that OpenAI's wire does not have. */
export const toolCallDelta = "response.tool_call.delta";
export const toolCallCompleted = "response.tool_call.completed";

/** What may follow an event of an item. Every item begins with `added` and ends with `done`. */
type Order = Readonly<Record<string, readonly string[]>>;

/** By the item's type. What was cut has no end of its own: the item is done without it, as incomplete. */
const orders: Readonly<Record<string, Order>> = {
  message: textOrder("response.output_text"),
  reasoning: textOrder("response.reasoning_text"),
  function_call: clientCallOrder("response.function_call_arguments", []),
  // Its text may be empty.
  custom_tool_call: clientCallOrder("response.custom_tool_call_input", [
    "response.custom_tool_call_input.done",
  ]),
  mcp_call: {
    [added]: ["response.mcp_call.in_progress"],
    "response.mcp_call.in_progress": [
      "response.mcp_call_arguments.delta",
      "response.mcp_call_arguments.done",
      done,
    ],
    "response.mcp_call_arguments.delta": [
      "response.mcp_call_arguments.delta",
      "response.mcp_call_arguments.done",
      done,
    ],
    "response.mcp_call_arguments.done": [
      "response.mcp_call.completed",
      "response.mcp_call.failed",
      done,
    ],
    "response.mcp_call.completed": [done],
    "response.mcp_call.failed": [done],
  },
  mcp_list_tools: {
    [added]: ["response.mcp_list_tools.in_progress"],
    "response.mcp_list_tools.in_progress": [
      "response.mcp_list_tools.completed",
      "response.mcp_list_tools.failed",
    ],
    "response.mcp_list_tools.completed": [done],
    "response.mcp_list_tools.failed": [done],
  },
  mcp_approval_request: { [added]: [done] },
};

/** The last event of a call before its output comes. */
const waitsBehind: Readonly<Record<string, string>> = {
  function_call: "response.function_call_arguments.done",
  custom_tool_call: "response.custom_tool_call_input.done",
};

function textOrder(name: string): Order {
  const [delta, textDone] = [`${name}.delta`, `${name}.done`];
  return {
    [added]: [partAdded],
    [partAdded]: [delta, textDone],
    [delta]: [delta, textDone],
    [textDone]: [partDone],
    [partDone]: [done],
  };
}

function clientCallOrder(name: string, atOnce: readonly string[]): Order {
  const [delta, textDone] = [`${name}.delta`, `${name}.done`];
  return {
    [added]: [toolCallDelta, delta, ...atOnce, done],
    [toolCallDelta]: [delta],
    [delta]: [toolCallDelta, delta, textDone, done],
    [textDone]: [toolCallCompleted, done],
    [toolCallCompleted]: [done],
  };
}

export class EventSequence {
  #next = 0;
  #ended = false;
  #addedCount = 0;
  /** By output index. */
  readonly #open = new Map<number, { order: Order; last: string }>();

  /** The number of the next event. */
  get next(): number {
    return this.#next;
  }

  /** Goes on behind events that were told before: of the items that are there, calls may wait for their outputs. */
  goOn(next: number, items: readonly { type: string; status?: string }[]): void {
    this.#next = next;
    this.#addedCount = items.length;
    for (const [index, { type, status }] of items.entries()) {
      const order = orders[type];
      const last = waitsBehind[type];
      if (order !== undefined && last !== undefined && status === "in_progress")
        this.#open.set(index, { order, last });
    }
  }

  /** An event of the response as a whole. */
  lifecycle(type: string, rest: object): WireEvent {
    return this.#number({ type, ...rest });
  }

  /** The one after which nothing comes. Calls that nobody answered may be open if `gaveUp`. */
  terminal(type: string, rest: object, gaveUp = false): WireEvent {
    if (this.#open.size > 0 && !gaveUp) throw fault(type, "comes while an item is open");
    const event = this.#number({ type, ...rest });
    this.#ended = true;
    return event;
  }

  /** Events of the item at `outputIndex`, in order. */
  item(outputIndex: number, events: readonly UnnumberedEvent[]): WireEvent[] {
    return events.map((event) => {
      this.#follow(outputIndex, event);
      return this.#number(event);
    });
  }

  #follow(outputIndex: number, event: UnnumberedEvent): void {
    const { type } = event;
    if (type === added) {
      const order = orders[(event["item"] as { type: string }).type];
      if (order === undefined || outputIndex !== this.#addedCount)
        throw fault(type, "adds no item that may come now");
      this.#addedCount++;
      this.#open.set(outputIndex, { order, last: type });
      return;
    }
    const open = this.#open.get(outputIndex);
    if (open === undefined || open.order[open.last]?.includes(type) !== true)
      throw fault(type, `may not follow ${open?.last ?? "a closed item"}`);
    open.last = type;
    if (type === done) this.#open.delete(outputIndex);
  }

  #number({ type, ...rest }: UnnumberedEvent): WireEvent {
    if (this.#ended) throw fault(type, "comes after the end");
    return { type, sequence_number: this.#next++, ...rest };
  }
}

function fault(type: string, problem: string): FermataError {
  return new FermataError("internal_error", `The event ${type} ${problem}.`);
}
