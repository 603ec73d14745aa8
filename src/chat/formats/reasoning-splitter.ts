/** Takes the reasoning off a round's beginning; the rest goes on. Blanks at its borders are its markers'. */

import type { ReasoningMarkers } from "../normalize.ts";
import { isBlank } from "./readers/json-scanner.ts";

export interface SplitterSink {
  reasoning(text: string): void;
  /** One character of what is not reasoning. */
  rest(character: string): void;
}

type Place = "start" | "reasoning" | "after" | "rest";

export class ReasoningSplitter {
  readonly #markers: ReasoningMarkers;
  readonly #sink: SplitterSink;
  #place: Place;
  /** What may become a marker. */
  #held = "";
  #blanks = "";
  #told = false;

  /** @param mode `split`: the text may begin with reasoning. `open`: the prompt already opened it. */
  constructor(markers: ReasoningMarkers, mode: "no" | "split" | "open", sink: SplitterSink) {
    this.#markers = markers;
    this.#sink = sink;
    this.#place = mode === "open" ? "reasoning" : mode === "split" ? "start" : "rest";
  }

  /** The reasoning was not closed. */
  get isOpen(): boolean {
    return this.#place === "reasoning";
  }

  feed(character: string): void {
    if (this.#place === "reasoning") this.#feedReasoning(character);
    else if (this.#place === "start") this.#feedStart(character);
    else if (this.#place === "rest" || !isBlank(character)) {
      this.#place = "rest";
      this.#sink.rest(character);
    }
  }

  finish(): void {
    const held = this.#held;
    this.#held = "";
    if (this.#place === "reasoning") this.#reason(held);
    else if (this.#place === "start") this.#passOn(held);
  }

  #feedStart(character: string): void {
    if (this.#held === "" && isBlank(character)) {
      this.#blanks += character;
      return;
    }
    const held = this.#held + character;
    const { open } = this.#markers;
    this.#held = "";
    if (held === open) {
      this.#place = "reasoning";
      this.#blanks = "";
    } else if (open.startsWith(held)) this.#held = held;
    else this.#passOn(held);
  }

  #passOn(held: string): void {
    this.#place = "rest";
    const text = this.#blanks + held;
    this.#blanks = "";
    for (let i = 0; i < text.length; i++) this.#sink.rest(text.charAt(i));
  }

  #feedReasoning(character: string): void {
    const { close } = this.#markers;
    const held = this.#held + character;
    this.#held = "";
    if (held === close) this.#place = "after";
    else if (close.startsWith(held)) this.#held = held;
    else {
      this.#reason(held.charAt(0));
      for (let i = 1; i < held.length; i++) this.#feedReasoning(held.charAt(i));
    }
  }

  #reason(text: string): void {
    if (text === "") return;
    if (isBlank(text)) {
      if (this.#told) this.#blanks += text;
      return;
    }
    this.#told = true;
    this.#sink.reasoning(this.#blanks + text);
    this.#blanks = "";
  }
}
