import type { UnnumberedEvent, ItemStatus, ReasoningItem } from "../types.ts";
import { added, done, partAdded, partDone, textGrammar } from "./grammar.ts";

const textDelta = "response.reasoning_text.delta";
const textDone = "response.reasoning_text.done";

export const reasoningGrammar = textGrammar("reasoning", textDelta, textDone);

/** The model's reasoning, in full: nothing of it is summed up or encrypted. */
export class ReasoningEvents {
  readonly item: ReasoningItem;
  readonly outputIndex: number;
  #text = "";

  constructor(id: string, outputIndex: number) {
    this.item = { id, type: "reasoning", summary: [], content: [], status: "in_progress" };
    this.outputIndex = outputIndex;
  }

  open(): UnnumberedEvent[] {
    const events = [this.#event(added, { item: { ...this.item } })];
    return [...events, this.#partEvent(partAdded, { part: { type: "reasoning_text", text: "" } })];
  }

  delta(delta: string): UnnumberedEvent[] {
    this.#text += delta;
    return [this.#partEvent(textDelta, { delta })];
  }

  close(status: ItemStatus): UnnumberedEvent[] {
    const text = this.#text;
    this.item.status = status;
    this.item.content = [{ type: "reasoning_text", text }];
    return [
      this.#partEvent(textDone, { text }),
      this.#partEvent(partDone, { part: { type: "reasoning_text", text } }),
      this.#event(done, { item: this.item }),
    ];
  }

  #partEvent(type: string, rest: object): UnnumberedEvent {
    return this.#event(type, { item_id: this.item.id, content_index: 0, ...rest });
  }

  #event(type: string, rest: object): UnnumberedEvent {
    return { type, output_index: this.outputIndex, ...rest };
  }
}
