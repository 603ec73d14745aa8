/** What the events of every kind of item have in common. */

import type { OutputItem, UnnumberedEvent } from "../types.ts";

export const added = "response.output_item.added";
export const done = "response.output_item.done";

/** Sent only to clients that asked for events that OpenAI's wire does not have. */
export const toolCallDelta = "response.tool_call.delta";
export const toolCallCompleted = "response.tool_call.completed";

/** The event has what the model drew. */
export function tellsOfModel({ type }: UnnumberedEvent): boolean {
  return type === added || type.endsWith(".delta");
}

/** The events of an item that comes at once. */
export function wholeItem(item: OutputItem, outputIndex: number): UnnumberedEvent[] {
  return [added, done].map((type) => ({ type, output_index: outputIndex, item }));
}

/** The events of an item that comes piece by piece. */
export abstract class ItemEvents<Item extends OutputItem & { status: string }> {
  /** As far as it is. */
  readonly item: Item;
  /** Its place in the response's `output`. */
  readonly outputIndex: number;

  constructor(item: Item, outputIndex: number) {
    this.item = item;
    this.outputIndex = outputIndex;
  }

  open(): UnnumberedEvent[] {
    return [this.event(added, { item: { ...this.item } })];
  }

  protected done(status: Item["status"]): UnnumberedEvent {
    this.item.status = status;
    return this.event(done, { item: this.item });
  }

  protected event(type: string, rest: object): UnnumberedEvent {
    return { type, output_index: this.outputIndex, ...rest };
  }

  /** An event that says which item it is of. */
  protected ownEvent(type: string, rest: object = {}): UnnumberedEvent {
    return this.event(type, { item_id: this.item.id, ...rest });
  }
}
