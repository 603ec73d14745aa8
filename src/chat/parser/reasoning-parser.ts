/** Text with markers in it: reasoning, most often at its beginning, and calls. */

import type { EventBuffer, OutputParserOptions, TextParser } from "./text-parser.ts";
import { CallFinder } from "./call-finder.ts";
import type { ToolCallFormat } from "../formats/format.ts";
import { isBlank } from "../formats/readers/json-scanner.ts";
import type { OfferedTools } from "../formats/readers/reader.ts";

/** Behind one of these a marker is spoken of, not written. */
const QUOTES = "`'\"";

/**
 * Takes reasoning off and gives the rest to the finder of calls. Blanks at reasoning's borders are its markers'.
 * A closing marker without an opening one is dropped. Calls at the end of reasoning that was not closed are
 * calls: models forget to close it. Anywhere else in reasoning they are its text.
 */
export class ReasoningParser implements TextParser {
  readonly #format: ToolCallFormat;
  readonly #offered: OfferedTools | null;
  readonly #events: EventBuffer;
  /** What opens reasoning, or ""; and what ends it. */
  readonly #open: string;
  readonly #closers: readonly string[];
  #finder: CallFinder;
  #isReasoning: boolean;
  /** What may become a marker of reasoning. */
  #held = "";
  #previous = "";
  /** Nothing but blanks since the beginning, or since reasoning ended. */
  #isLeading = true;
  /** Of text: blanks at the beginning. Of reasoning: blanks that count if more follows. */
  #blanks = "";
  /** Something of this reasoning was told; of any. */
  #told = false;
  #hasReasoned = false;
  /** Calls in reasoning: how to tell them if nothing follows. */
  #calls: (() => void)[] = [];
  /** Their text, if something does. */
  #callText = "";
  #textFollowed = false;

  constructor({ format, offered, reasoning }: OutputParserOptions, events: EventBuffer) {
    this.#format = format;
    this.#offered = offered;
    this.#events = events;
    const { open, close } = format.reasoning;
    this.#open = reasoning === "no" ? "" : open;
    const textOpen = format.syntax.textOpen ?? "";
    this.#closers = reasoning === "no" ? [] : [close, textOpen].filter((marker) => marker !== "");
    this.#isReasoning = reasoning === "open";
    this.#finder = this.#newFinder();
  }

  get inCall(): boolean {
    return this.#finder.inCall;
  }

  get inReasoning(): boolean {
    return this.#isReasoning;
  }

  feed(character: string): void {
    if (this.#open === "") return this.#finder.feed(character);
    const held = this.#held + character;
    this.#held = "";
    if (!this.#mayBeMarker(held)) this.#pass(held);
    else if (held === this.#open && !this.#told) this.#beginReasoning();
    else if (this.#closers.includes(held)) this.#endReasoning();
    else if ([this.#open, ...this.#closers].some((marker) => marker.startsWith(held)))
      this.#held = held;
    else {
      this.#pass(held.charAt(0));
      for (let i = 1; i < held.length; i++) this.feed(held.charAt(i));
    }
  }

  finish(natural: boolean): void {
    for (const character of this.#held) this.#pass(character);
    if (!this.#isReasoning) this.#passBlanks();
    this.#finder.finish(natural);
    if (this.#calls.length === 0) return;
    if (this.#textFollowed || !natural) return this.#giveBackCalls();
    this.#isReasoning = false;
    for (const tell of this.#calls) tell();
  }

  #newFinder(): CallFinder {
    const events = this.#events;
    const tell = (event: () => void): void => {
      if (this.#isReasoning) this.#calls.push(event);
      else event();
    };
    const finder = new CallFinder(this.#format, this.#offered, {
      content: (text) => {
        if (!this.#isReasoning) events.content(text);
        else if (this.#calls.length === 0) this.#reason(text);
        else this.#textFollowed = true;
      },
      start: (name) => {
        if (!this.#isReasoning) this.#isLeading = false;
        else if (this.#calls.length === 0) this.#blanks += finder.blanks;
        tell(() => events.start(name));
      },
      arguments: (delta) => tell(() => events.arguments(delta)),
      end: () => tell(() => events.end()),
    });
    finder.marksOnly = this.#isReasoning;
    return finder;
  }

  #mayBeMarker(held: string): boolean {
    if (held.length > 1 || this.#isReasoning) return true;
    return this.#finder.inText && (this.#previous === "" || !QUOTES.includes(this.#previous));
  }

  /** One character that is no marker's. */
  #pass(character: string): void {
    this.#previous = character;
    if (this.#isReasoning) return this.#passReasoning(character);
    if (this.#isLeading) {
      if (isBlank(character)) {
        if (!this.#hasReasoned) this.#blanks += character;
        return;
      }
      this.#isLeading = false;
      this.#passBlanks();
    }
    this.#finder.feed(character);
  }

  #passReasoning(character: string): void {
    if (this.#calls.length === 0 && this.#finder.isIdle) this.#callText = "";
    this.#callText += character;
    this.#finder.feed(character);
    if (this.#textFollowed) this.#giveBackCalls();
  }

  #passBlanks(): void {
    for (const blank of this.#blanks) this.#finder.feed(blank);
    this.#blanks = "";
  }

  /** What looked like calls was spoken of. */
  #giveBackCalls(): void {
    this.#calls = [];
    this.#textFollowed = false;
    this.#reason(this.#callText);
    this.#callText = "";
    this.#finder = this.#newFinder();
  }

  #beginReasoning(): void {
    if (!this.#isReasoning) this.#finder.interrupt(!this.#isLeading);
    this.#setReasoning(true);
  }

  #endReasoning(): void {
    if (this.#isReasoning) {
      if (this.#calls.length > 0) this.#giveBackCalls();
      this.#finder.interrupt(false);
      this.#isLeading = true;
    }
    if (this.#isLeading) this.#hasReasoned = true;
    this.#setReasoning(false);
  }

  #setReasoning(isReasoning: boolean): void {
    this.#isReasoning = isReasoning;
    this.#finder.marksOnly = isReasoning;
    this.#told = false;
    if (isReasoning || this.#isLeading) this.#blanks = "";
  }

  #reason(text: string): void {
    const visible = text.replace(/[ \n\r\t]+$/u, "");
    if (visible === "") {
      if (this.#told) this.#blanks += text;
      return;
    }
    const isNext = !this.#told && this.#hasReasoned;
    const blanks = this.#told ? this.#blanks : isNext ? "\n" : "";
    this.#events.reasoning(blanks + (this.#told ? visible : visible.trimStart()));
    this.#told = true;
    this.#hasReasoned = true;
    this.#blanks = text.slice(visible.length);
  }
}
