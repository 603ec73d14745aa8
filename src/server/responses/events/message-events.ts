import type { WireContentToken } from "../../answer/logprobs.ts";
import type { UnnumberedEvent, ItemStatus, MessageItem, OutputText } from "../types.ts";
import { added, done, partAdded, partDone, textGrammar } from "./grammar.ts";

const textDelta = "response.output_text.delta";
const textDone = "response.output_text.done";

export const messageGrammar = textGrammar("message", textDelta, textDone);

/** An assistant's message with one text part. */
export class MessageEvents {
  readonly item: MessageItem;
  readonly outputIndex: number;
  #text = "";
  readonly #logprobs: WireContentToken[] = [];

  constructor(id: string, outputIndex: number) {
    this.item = { id, type: "message", status: "in_progress", role: "assistant", content: [] };
    this.outputIndex = outputIndex;
  }

  open(): UnnumberedEvent[] {
    const events = [this.#event(added, { item: { ...this.item } })];
    return [...events, this.#partEvent(partAdded, { part: textPart("") })];
  }

  /** @param logprobs of the tokens that `delta` is made of, if they are asked for */
  delta(delta: string, logprobs: WireContentToken[] = []): UnnumberedEvent[] {
    this.#text += delta;
    this.#logprobs.push(...logprobs);
    return [this.#partEvent(textDelta, { delta, logprobs })];
  }

  close(status: ItemStatus): UnnumberedEvent[] {
    const text = this.#text;
    this.item.status = status;
    const part = { ...textPart(text), logprobs: this.#logprobs };
    this.item.content = [part];
    return [
      this.#partEvent(textDone, { text, logprobs: this.#logprobs }),
      this.#partEvent(partDone, { part }),
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

function textPart(text: string): OutputText {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}
