/** Text with markers in it: reasoning, most often at its beginning, and calls. */

import type { EventBuffer, OutputParserOptions, TextParser } from "./text-parser.ts";
import { CallFinder } from "./call-finder.ts";
import type { ToolCallFormat } from "../formats/format.ts";
import { isBlank } from "../formats/readers/json-scanner.ts";
import type { OfferedTools } from "../formats/readers/reader.ts";

/**
 * Takes reasoning off and gives the rest to the finder of calls. Blanks at reasoning's borders are its markers'.
 * Behind text, reasoning begins on a line of its own; elsewhere its markers are spoken of. A closing marker without
 * an opening one is dropped before text and behind a call. Calls at the end of reasoning that was not closed are
 * calls: models forget to close it. Anywhere else in reasoning they are its text.
 */
export class ReasoningParser implements TextParser {
  readonly #format: ToolCallFormat;
  readonly #offered: OfferedTools | null;
  readonly #events: EventBuffer;
  readonly #takesCall: (name: string, index: number) => boolean;
  /** What opens reasoning; what does behind text, where words are the answer's; and what ends it. */
  readonly #openers: readonly string[];
  readonly #lateOpeners: readonly string[];
  /** What opens reasoning is no text of an answer, wherever it stands. */
  readonly #opensWithinLines: boolean;
  readonly #closers: readonly string[];
  /** What is dropped between reasoning and the answer. */
  readonly #responseOpeners: readonly string[];
  #finder: CallFinder;
  #isReasoning: boolean;
  /** What may become a marker of reasoning. */
  #held = "";
  /** Nothing but blanks since the beginning, or since reasoning ended. */
  #isLeading = true;
  /** Of text: blanks at the beginning. Of reasoning: blanks that count if more follows. */
  #blanks = "";
  /** Something of this reasoning was told; of any. */
  #told = false;
  #hasReasoned = false;
  /** Calls in reasoning: how to tell them if nothing follows. */
  #calls: (() => void)[] = [];
  #callCount = 0;
  /** Their text, if something does. */
  #callText = "";
  #textFollowed = false;

  constructor(
    { format, offered, reasoning, takesCall = () => true }: OutputParserOptions,
    events: EventBuffer,
  ) {
    this.#format = format;
    this.#takesCall = takesCall;
    this.#offered = offered;
    this.#events = events;
    const { open, close } = format.reasoning;
    const textOpen = format.syntax.textOpen ?? "";
    this.#openers = reasoning === "no" || open === "" ? [] : [open];
    this.#lateOpeners = this.#openers.filter((marker) => !marker.includes(" "));
    this.#opensWithinLines = format.silentMarkers.some((marker) => open.startsWith(marker));
    this.#closers = [close, textOpen].filter((marker) => marker !== "");
    this.#responseOpeners = [...this.#closers, format.response[0]].filter(
      (marker) => marker !== "",
    );
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
    if (this.#openers.length === 0) return this.#finder.feed(character);
    const held = this.#held + character;
    this.#held = "";
    const { openers, closers } = this.#markers;
    if (openers.includes(held)) this.#beginReasoning();
    else if (closers.includes(held)) this.#endReasoning();
    else if ([...openers, ...closers].some((marker) => marker.startsWith(held))) this.#held = held;
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
    this.#callCount = 0;
    for (const tell of this.#calls) tell();
  }

  #newFinder(): CallFinder {
    const events = this.#events;
    const tell = (event: () => void): void => {
      if (this.#isReasoning) this.#calls.push(event);
      else event();
    };
    const options = {
      format: this.#format,
      offered: this.#offered,
      takesCall: (name: string) => this.#takesCall(name, events.count + this.#callCount),
    };
    const finder = new CallFinder(options, {
      content: (text) => {
        if (!this.#isReasoning) events.content(text);
        else if (this.#calls.length === 0) this.#reason(text);
        else this.#textFollowed = true;
      },
      start: (name, isGuided) => {
        if (!this.#isReasoning) this.#isLeading = false;
        else if (this.#calls.length === 0) this.#blanks += finder.blanks;
        if (this.#isReasoning) this.#callCount += 1;
        tell(() => events.start(name, isGuided));
      },
      arguments: (delta) => tell(() => events.arguments(delta)),
      end: () => tell(() => events.end()),
    });
    finder.marksOnly = this.#isReasoning;
    return finder;
  }

  /** What is a marker here. */
  get #markers(): { openers: readonly string[]; closers: readonly string[] } {
    if (this.#isReasoning)
      return { openers: this.#told ? [] : this.#openers, closers: this.#closers };
    if (this.#isLeading) {
      const closers = this.#hasReasoned ? this.#responseOpeners : this.#closers;
      return { openers: this.#openers, closers };
    }
    const { isInProse, isBetweenLines, isBehindCall } = this.#finder;
    const mayOpen = this.#opensWithinLines ? isInProse : isBetweenLines;
    return {
      openers: mayOpen ? this.#lateOpeners : [],
      closers: isBehindCall ? this.#closers : [],
    };
  }

  /** One character that is no marker's. */
  #pass(character: string): void {
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
    this.#callCount = 0;
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
    const [, responseClose] = this.#format.response;
    if (responseClose !== "")
      this.#finder.silentMarkers = [...this.#format.silentMarkers, responseClose];
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
