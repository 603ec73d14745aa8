/** Text with markers in it: reasoning at its beginning, calls after that. */

import { CallFinder } from "./call-finder.ts";
import type { EventBuffer } from "./event-buffer.ts";
import type { OutputParserOptions, TextParser } from "./output-parser.ts";
import { ReasoningSplitter } from "./reasoning-splitter.ts";

export class MarkedTextParser implements TextParser {
  readonly #splitter: ReasoningSplitter;
  readonly #finder: CallFinder;

  constructor({ format, offered, reasoning }: OutputParserOptions, events: EventBuffer) {
    this.#finder = new CallFinder(format, offered, events);
    this.#splitter = new ReasoningSplitter(format.reasoning, reasoning, {
      reasoning: (text) => events.reasoning(text),
      rest: (character) => this.#finder.feed(character),
    });
  }

  get inCall(): boolean {
    return this.#finder.inCall;
  }

  get inReasoning(): boolean {
    return this.#splitter.isOpen;
  }

  feed(character: string): void {
    this.#splitter.feed(character);
  }

  finish(natural: boolean): void {
    this.#splitter.finish();
    this.#finder.finish(natural);
  }
}
