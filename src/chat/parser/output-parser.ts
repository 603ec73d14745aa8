/**
 * Splits a round's text into reasoning, content and calls while it comes in. Works a character at a
 * time, so it does not matter how the text is cut; holds back what is still ambiguous; takes nothing
 * back. What turns out to be no call is content, verbatim.
 */

import {
  type OutputEvent,
  type OutputParserOptions,
  type TextParser,
  EventBuffer,
} from "./text-parser.ts";
import type { ToolCall } from "../types.ts";
import { ChannelParser } from "./channel-parser.ts";
import { RecipientParser } from "./recipient-parser.ts";
import { ReasoningParser } from "./reasoning-parser.ts";

export class OutputParser {
  /** Complete calls so far. */
  readonly calls: ToolCall[] = [];
  readonly #events: EventBuffer;
  readonly #parser: TextParser;

  constructor(options: OutputParserOptions) {
    this.#events = new EventBuffer(this.calls, options);
    this.#parser = parserOf(options, this.#events);
  }

  /** A call in the form that the grammar of a round holds. */
  isGuided(call: ToolCall): boolean {
    return this.#events.isGuided(call);
  }

  /** A call was the third of equal ones. The text that follows is not read. */
  get endsEarly(): boolean {
    return this.#events.endsEarly;
  }

  get inCall(): boolean {
    return !this.endsEarly && this.#parser.inCall;
  }

  get inReasoning(): boolean {
    return !this.endsEarly && this.#parser.inReasoning;
  }

  push(text: string): OutputEvent[] {
    for (let i = 0; i < text.length && !this.endsEarly; i++) this.#parser.feed(text.charAt(i));
    return this.#events.take();
  }

  finish(natural: boolean): OutputEvent[] {
    if (!this.endsEarly) this.#parser.finish(natural);
    this.#events.tellWaiting();
    return this.#events.take();
  }
}

function parserOf(options: OutputParserOptions, events: EventBuffer): TextParser {
  const { usesChannels, recipients } = options.format;
  if (usesChannels) return new ChannelParser(options, events);
  if (recipients !== null) return new RecipientParser(options, recipients, events);
  return new ReasoningParser(options, events);
}
