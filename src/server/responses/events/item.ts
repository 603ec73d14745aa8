import type { OutputItem, UnnumberedEvent } from "../types.ts";
import { added, done } from "./sequence.ts";

/** The events of an item that comes piece by piece, in the order that `EventSequence` allows. */
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
