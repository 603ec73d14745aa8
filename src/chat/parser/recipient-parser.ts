/**
 * Messages that say in a header whom they are for: the user, the model itself (reasoning), or a tool. The prompt ends
 * where the first header begins. What is no header is text.
 */

import type { Recipients, ToolCallFormat } from "../formats/format.ts";
import type { CallReader, CallSink, OfferedTools } from "../formats/readers/reader.ts";
import { isBlank } from "../formats/readers/json-scanner.ts";
import type { EventBuffer, OutputParserOptions, TextParser } from "./text-parser.ts";

type Place = "header" | "content" | "reasoning" | "call" | "after-call";

export class RecipientParser implements TextParser {
  readonly #format: ToolCallFormat;
  readonly #recipients: Recipients;
  readonly #offered: OfferedTools | null;
  readonly #events: EventBuffer;
  /** A header that names a tool is a call for the grammar, too. */
  readonly #calls: CallSink;
  readonly #takesCall: (name: string) => boolean;
  readonly #ends: readonly string[];
  #place: Place = "header";
  /** Where the text before a header was, and the marker before it. */
  #before: { place: Place; marker: string } = { place: "content", marker: "" };
  /** What may become a header, or a marker. */
  #held = "";
  #reader: CallReader;
  /** Blanks that count if more follows. */
  #blanks = "";
  /** Something of this reasoning was told; of any. */
  #told = false;
  #hasReasoned = false;

  constructor(
    { format, offered, reasoning, takesCall = () => true }: OutputParserOptions,
    recipients: Recipients,
    events: EventBuffer,
  ) {
    this.#format = format;
    this.#recipients = recipients;
    this.#offered = offered;
    this.#events = events;
    this.#calls = {
      start: (name) => events.start(name, true),
      arguments: (delta) => events.arguments(delta),
      end: () => events.end(),
    };
    this.#takesCall = (name) => offered?.has(name) === true && takesCall(name, events.count);
    this.#ends = [recipients.next, ...recipients.ends];
    this.#reader = format.reader(this.#calls, offered);
    if (reasoning === "open") this.#place = "reasoning";
  }

  get inCall(): boolean {
    return this.#place === "call";
  }

  get inReasoning(): boolean {
    return this.#place === "reasoning";
  }

  feed(character: string): void {
    if (this.#place === "header") this.#feedHeader(this.#held + character);
    else this.#feedText(character);
  }

  finish(natural: boolean): void {
    // A header alone says nothing.
    if (this.#place === "header" && !this.#isHeader(natural)) this.#takeAsText(this.#held);
    const held = this.#held;
    this.#held = "";
    if (this.#place !== "header") for (const character of held) this.#take(character);
    if (this.#place === "content") this.#events.content(this.#blanks);
    if (this.#place === "call" && natural) this.#reader.close();
  }

  #feedHeader(held: string): void {
    const { open, close } = this.#recipients;
    const name = held.slice(open.length, -close.length);
    this.#held = held;
    if (held === open + name + close && this.#isKnown(name)) this.#begin(name);
    else if (!this.#mayBeHeader(held)) this.#takeAsText(held);
  }

  #isKnown(name: string): boolean {
    const { text, reasoning } = this.#recipients;
    return name === text || (name === reasoning && name !== "") || this.#takesCall(name);
  }

  #mayBeHeader(text: string): boolean {
    const { open, close } = this.#recipients;
    if (open.startsWith(text)) return true;
    if (!text.startsWith(open)) return false;
    const name = /^[\w.:/-]{1,128}/u.exec(text.slice(open.length))?.[0];
    return name !== undefined && close.startsWith(text.slice(open.length + name.length));
  }

  /** What is held back at the end is a header without a message, or was cut in one. */
  #isHeader(natural: boolean): boolean {
    const { open } = this.#recipients;
    if (open.startsWith(this.#held)) return true;
    const [name = ""] = /^[\w.:/-]*/u.exec(this.#held.slice(open.length)) ?? [];
    return !natural || this.#isKnown(name);
  }

  /** No header: the marker before it was text, too. Behind a call it is a message of its own. */
  #takeAsText(held: string): void {
    const { place, marker } = this.#before;
    this.#held = "";
    this.#place = place === "after-call" ? "content" : place;
    for (const character of marker) this.#take(character);
    for (const character of held) this.feed(character);
  }

  #begin(name: string): void {
    const { text, reasoning, close } = this.#recipients;
    this.#held = this.#blanks = "";
    this.#told = false;
    this.#place = name === text ? "content" : name === reasoning ? "reasoning" : "call";
    if (this.#place !== "call") return;
    this.#reader = this.#format.reader(this.#calls, this.#offered);
    for (const character of name + close) this.#reader.feed(character);
  }

  #feedText(character: string): void {
    const held = this.#held + character;
    this.#held = "";
    const isInString = this.#place === "call" && this.#reader.inString;
    const ends = isInString ? [] : this.#ends.filter((marker) => marker.startsWith(held));
    if (ends.includes(held)) this.#endMessage(held);
    else if (ends.length > 0) this.#held = held;
    else {
      this.#take(held.charAt(0));
      for (const rest of held.slice(1)) this.#feedText(rest);
    }
  }

  #endMessage(marker: string): void {
    if (marker !== this.#recipients.next) return;
    if (this.#place === "call") {
      this.#reader.close();
      this.#place = "after-call";
    }
    this.#before = { place: this.#place, marker };
    this.#place = "header";
  }

  #take(character: string): void {
    if (this.#place === "call") {
      if (this.#reader.state !== "done") this.#reader.feed(character);
      if (this.#reader.state === "done") this.#place = "after-call";
    } else if (this.#place === "after-call") return;
    else if (isBlank(character)) this.#blanks += character;
    else {
      if (this.#place === "reasoning") this.#reason(character);
      else this.#events.content(this.#blanks + character);
      this.#blanks = "";
    }
  }

  #reason(character: string): void {
    const blanks = this.#told ? this.#blanks : this.#hasReasoned ? "\n" : "";
    this.#events.reasoning(blanks + character);
    this.#told = this.#hasReasoned = true;
  }
}
