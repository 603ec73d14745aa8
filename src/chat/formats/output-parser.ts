/**
 * Splits a round's text into reasoning, content and calls while it comes in. Works a character at a
 * time, so it does not matter how the text is cut; holds back what is still ambiguous; takes nothing
 * back. What turns out to be no call is content, verbatim.
 */

import type { ChatEvent, ToolCall } from "../types.ts";
import { newCallId } from "./call-id.ts";
import { EventBuffer } from "./event-buffer.ts";
import { ChannelParser } from "./channel-parser.ts";
import type { ToolCallFormat } from "./format.ts";
import { MarkedTextParser } from "./marked-text-parser.ts";
import type { OfferedTools } from "./readers/reader.ts";

export type OutputEvent = Extract<
  ChatEvent,
  { type: "reasoning" | "content" | "call-start" | "call-arguments" | "call-end" }
>;

export interface OutputParserOptions {
  format: ToolCallFormat;
  /** The offered tools; null when no call is looked for. */
  offered: OfferedTools | null;
  /** `split`: the text may begin with reasoning. `open`: the prompt already opened it. */
  reasoning: "no" | "split" | "open";
  newCallId?: (() => string) | undefined;
}

/** Works a character at a time. */
export interface TextParser {
  /** The text ends inside of what is, or may become, a call. */
  readonly inCall: boolean;
  /** The text ends inside of reasoning that was not closed. */
  readonly inReasoning: boolean;
  feed(character: string): void;
  /** @param natural the model ended its turn; else the text was cut and an open call stays incomplete. */
  finish(natural: boolean): void;
}

export class OutputParser {
  /** Complete calls so far. */
  readonly calls: ToolCall[] = [];
  readonly #events: EventBuffer;
  readonly #parser: TextParser;

  constructor(options: OutputParserOptions) {
    this.#events = new EventBuffer(this.calls, options.newCallId ?? newCallId);
    this.#parser = options.format.usesChannels
      ? new ChannelParser(options, this.#events)
      : new MarkedTextParser(options, this.#events);
  }

  get inCall(): boolean {
    return this.#parser.inCall;
  }

  get inReasoning(): boolean {
    return this.#parser.inReasoning;
  }

  push(text: string): OutputEvent[] {
    for (let i = 0; i < text.length; i++) this.#parser.feed(text.charAt(i));
    return this.#events.take();
  }

  finish(natural: boolean): OutputEvent[] {
    this.#parser.finish(natural);
    return this.#events.take();
  }
}
