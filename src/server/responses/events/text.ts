/** Messages and reasoning: items with one part of text. Reasoning is told in full and not summed up. */

import type { WireContentToken } from "../../answer/logprobs.ts";
import { encodeText } from "../input/encoded.ts";
import type { ItemStatus, MessageItem, ReasoningItem, UnnumberedEvent } from "../types.ts";
import { ItemEvents } from "./item.ts";

export type TextKind = "message" | "reasoning";

const names = { message: "response.output_text", reasoning: "response.reasoning_text" } as const;

export class TextEvents extends ItemEvents<MessageItem | ReasoningItem> {
  readonly kind: TextKind;
  readonly #isCarried: boolean;
  #text = "";
  readonly #logprobs: WireContentToken[] = [];

  /** @param isCarried reasoning is also given in the form that clients carry from turn to turn */
  constructor(kind: TextKind, id: string, outputIndex: number, isCarried = false) {
    const status = "in_progress";
    super(
      kind === "message"
        ? { id, type: kind, status, role: "assistant", content: [] }
        : { id, type: kind, summary: [], content: [], status },
      outputIndex,
    );
    this.kind = kind;
    this.#isCarried = isCarried && kind === "reasoning";
  }

  /** Of a text that was told so far. */
  static told(
    item: MessageItem | ReasoningItem,
    outputIndex: number,
    isCarried: boolean,
  ): TextEvents {
    const events = new TextEvents(item.type, item.id, outputIndex, isCarried);
    for (const part of item.content) {
      events.#text += part.text;
      if (part.type === "output_text") events.#logprobs.push(...part.logprobs);
    }
    return events;
  }

  override open(): UnnumberedEvent[] {
    return [
      ...super.open(),
      this.#partEvent("response.content_part.added", { part: this.#part() }),
    ];
  }

  /** @param logprobs of the tokens that `delta` is made of, if they are asked for */
  delta(delta: string, logprobs: WireContentToken[] = []): UnnumberedEvent[] {
    this.#text += delta;
    this.#logprobs.push(...logprobs);
    return [this.#partEvent(`${names[this.kind]}.delta`, { delta, ...this.#ifMessage(logprobs) })];
  }

  close(status: ItemStatus): UnnumberedEvent[] {
    const part = this.#part();
    const text = { text: this.#text, ...this.#ifMessage(this.#logprobs) };
    this.item.content = [part] as typeof this.item.content;
    if (this.#isCarried && this.item.type === "reasoning")
      this.item.encrypted_content = encodeText("reasoning", this.#text);
    return [
      this.#partEvent(`${names[this.kind]}.done`, text),
      this.#partEvent("response.content_part.done", { part }),
      this.done(status),
    ];
  }

  #part(): object {
    return this.kind === "reasoning"
      ? { type: "reasoning_text", text: this.#text }
      : { type: "output_text", text: this.#text, annotations: [], logprobs: [...this.#logprobs] };
  }

  #ifMessage(logprobs: WireContentToken[]): object {
    return this.kind === "message" ? { logprobs } : {};
  }

  #partEvent(type: string, rest: object): UnnumberedEvent {
    return this.ownEvent(type, { content_index: 0, ...rest });
  }
}
