/**
 * Splits a round's text into reasoning, content and calls while it comes in. Works a character at a
 * time, so it does not matter how the text is cut; holds back what is still ambiguous; takes nothing
 * back. What turns out to be no call is content, verbatim.
 */

import type { ChatEvent, ToolCall } from "../types.ts";
import { CallFinder } from "./call-finder.ts";
import { newCallId } from "./call-id.ts";
import type { OfferedNames } from "./call-reader.ts";
import { EventBuffer } from "./event-buffer.ts";
import type { ToolCallFormat } from "./format.ts";
import { ReasoningSplitter } from "./reasoning-splitter.ts";

export type OutputEvent = Extract<
  ChatEvent,
  { type: "reasoning" | "content" | "call-start" | "call-arguments" | "call-end" }
>;

export interface OutputParserOptions {
  format: ToolCallFormat;
  /** Names of the offered tools; null when no call is looked for. */
  offered: OfferedNames | null;
  /** `split`: the text may begin with reasoning. `open`: the prompt already opened it. */
  reasoning: "no" | "split" | "open";
  newCallId?: (() => string) | undefined;
}

export class OutputParser {
  /** Complete calls so far. */
  readonly calls: ToolCall[] = [];
  readonly #events: EventBuffer;
  readonly #splitter: ReasoningSplitter;
  readonly #finder: CallFinder;

  constructor(options: OutputParserOptions) {
    this.#events = new EventBuffer(this.calls, options.newCallId ?? newCallId);
    this.#finder = new CallFinder(options.format, options.offered, this.#events);
    this.#splitter = new ReasoningSplitter(options.format.reasoning, options.reasoning, {
      reasoning: (text) => this.#events.reasoning(text),
      rest: (character) => this.#finder.feed(character),
    });
  }

  /** The text ends inside of what is, or may become, a call. */
  get inCall(): boolean {
    return this.#finder.inCall;
  }

  /** The text ends inside of reasoning that was not closed. */
  get inReasoning(): boolean {
    return this.#splitter.isOpen;
  }

  push(text: string): OutputEvent[] {
    for (let i = 0; i < text.length; i++) this.#splitter.feed(text.charAt(i));
    return this.#events.take();
  }

  /** @param natural the model ended its turn; else the text was cut and an open call stays incomplete. */
  finish(natural: boolean): OutputEvent[] {
    this.#splitter.finish();
    this.#finder.finish(natural);
    return this.#events.take();
  }
}
