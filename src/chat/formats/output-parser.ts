/**
 * Splits a round's text into reasoning, content and calls while it comes in. Works a character at a
 * time, so it does not matter how the text is cut; holds back what is still ambiguous; takes nothing
 * back. What turns out to be no call is content, verbatim.
 */

import { randomBytes } from "node:crypto";

import type { ChatEvent, ToolCall } from "../types.ts";
import { CallReader, type OfferedNames } from "./call-reader.ts";
import { EventBuffer } from "./event-buffer.ts";
import type { ToolCallFormat } from "./format.ts";
import { isBlank } from "./json-scanner.ts";

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

type Place =
  | "start"
  | "reasoning"
  | "after-reasoning"
  | "text"
  | "tagged-call"
  | "tagged-tail"
  | "bare-call"
  | "fence-info"
  | "fenced-call"
  | "fenced-tail"
  | "code";

const FENCE = "```";
const MAX_INFO = 64;

export class OutputParser {
  readonly calls: ToolCall[] = [];
  readonly #format: ToolCallFormat;
  readonly #offered: OfferedNames | null;
  readonly #events: EventBuffer;
  #place: Place;
  #reader: CallReader;
  /** Blanks that are dropped if a call follows. */
  #blanks = "";
  /** What may become a marker. */
  #held = "";
  /** What may become a call; content if it does not. */
  #verbatim = "";
  /** Nothing but blanks on this line so far. */
  #lineIsBlank = true;
  #fenceLength = 0;
  /** Its content is on lines of its own. */
  #fenceIsBlock = false;
  #ticks = 0;
  #afterCall = false;

  constructor(options: OutputParserOptions) {
    this.#format = options.format;
    this.#offered = options.offered;
    this.#events = new EventBuffer(this.calls, options.newCallId ?? newCallId);
    this.#reader = new CallReader(this.#events, null);
    this.#place = options.reasoning === "open" ? "reasoning" : options.reasoning === "split" ? "start" : "text";
  }

  /** The text ends inside of what is, or may become, a call. */
  get inCall(): boolean {
    return this.#place === "tagged-call" || this.#place === "bare-call" || this.#place === "fenced-call";
  }

  /** The text ends inside of reasoning that was not closed. */
  get inReasoning(): boolean {
    return this.#place === "reasoning";
  }

  push(text: string): OutputEvent[] {
    for (let i = 0; i < text.length; i++) this.#feed(text.charAt(i));
    return this.#events.take();
  }

  /** @param natural the model ended its turn; else the text was cut and an open call stays incomplete. */
  finish(natural: boolean): OutputEvent[] {
    if (this.inCall) {
      if (this.#held !== "") this.#feedReaderRest();
      if (this.#reader.state === "undecided") this.#release(this.#verbatim);
      else if (natural) this.#reader.close();
    } else if (this.#place === "reasoning") {
      this.#reason(this.#held);
    } else {
      if (this.#place === "fence-info") this.#release(this.#verbatim);
      this.#write(this.#held);
    }
    if (!this.#afterCall && this.#place !== "reasoning") this.#writeBlanks();
    this.#held = this.#verbatim = this.#blanks = "";
    return this.#events.take();
  }

  #feed(character: string): void {
    switch (this.#place) {
      case "start":
        return this.#feedStart(character);
      case "reasoning":
        return this.#feedReasoning(character);
      case "after-reasoning":
        if (isBlank(character)) return;
        this.#place = "text";
        return this.#feedText(character);
      case "text":
        return this.#feedText(character);
      case "tagged-call":
        return this.#feedTagged(character);
      case "tagged-tail":
        return this.#feedTail(character, this.#format.callClose, "}]");
      case "bare-call":
        return this.#feedReader(character, "text");
      case "fence-info":
        return this.#feedFenceInfo(character);
      case "fenced-call":
        if (character === "\n") this.#fenceIsBlock = true;
        return this.#feedReader(character, this.#fenceIsBlock ? "code" : "text");
      case "fenced-tail":
        if (character === "{" && this.#held === "") return this.#beginCall("fenced-call", character);
        return this.#feedTail(character, FENCE, "");
      case "code":
        return this.#feedCode(character);
    }
  }

  #feedStart(character: string): void {
    if (this.#held === "" && isBlank(character)) {
      this.#blanks += character;
      return;
    }
    const held = this.#held + character;
    const { open } = this.#format.reasoning;
    this.#held = open.startsWith(held) && held !== open ? held : "";
    if (this.#held !== "") return;
    this.#place = held === open ? "reasoning" : "text";
    if (held === open) this.#blanks = "";
    else this.#refeed(held);
  }

  #feedReasoning(character: string): void {
    const { close } = this.#format.reasoning;
    const held = this.#held + character;
    if (held === close) {
      this.#held = this.#blanks = "";
      this.#place = "after-reasoning";
    } else if (close.startsWith(held)) this.#held = held;
    else if (this.#held !== "") {
      this.#held = "";
      this.#reason(held.charAt(0));
      this.#refeed(held.slice(1));
    } else this.#reason(character);
  }

  /** Blanks at the borders of reasoning are its markers', not its own. */
  #reason(text: string): void {
    if (text === "") return;
    if (isBlank(text)) {
      if (this.#events.reasoned) this.#blanks += text;
      return;
    }
    this.#events.reasoning(this.#blanks + text);
    this.#blanks = "";
  }

  #feedText(character: string): void {
    if (this.#offered === null) return this.#write(character);
    if (this.#held === "" && isBlank(character)) {
      this.#blanks += character;
      if (character === "\n") this.#lineIsBlank = true;
      return;
    }
    const held = this.#held + character;
    const { callOpen, bareCalls } = this.#format;
    if (held === callOpen) this.#beginCall("tagged-call", held);
    else if (bareCalls && this.#lineIsBlank && held === FENCE) this.#beginFence();
    else if (callOpen.startsWith(held) || (bareCalls && this.#lineIsBlank && FENCE.startsWith(held))) this.#held = held;
    else if (bareCalls && this.#lineIsBlank && held === "{") this.#beginCall("bare-call", held);
    else {
      this.#held = "";
      this.#write(held.charAt(0));
      this.#refeed(held.slice(1));
    }
  }

  #beginCall(place: "tagged-call" | "bare-call" | "fenced-call", opening: string): void {
    this.#place = place;
    this.#held = "";
    this.#verbatim += opening;
    this.#reader = new CallReader(this.#events, place === "tagged-call" ? null : this.#offered);
    if (place !== "tagged-call" && opening === "{") this.#reader.feed(opening);
  }

  #feedTagged(character: string): void {
    const { callClose } = this.#format;
    const held = this.#held + character;
    if (!this.#reader.inString && callClose.startsWith(held)) {
      this.#held = held === callClose ? "" : held;
      if (held === callClose) this.#closeTagged();
      return;
    }
    this.#held = "";
    this.#feedReader(held.charAt(0), "text");
    this.#refeed(held.slice(1));
  }

  #closeTagged(): void {
    this.#reader.close();
    if (this.#reader.state === "refused") this.#release(this.#verbatim + this.#format.callClose);
    else this.#endCall("text");
  }

  /** What was held as a possible closing tag belongs to the call. */
  #feedReaderRest(): void {
    const rest = this.#held;
    this.#held = "";
    for (const character of rest) {
      if (this.#reader.state === "undecided" || this.#reader.state === "call") this.#feedReader(character, "text");
      else this.#refeed(character);
    }
  }

  #feedReader(character: string, afterRefusal: "text" | "code"): void {
    const taken = this.#reader.feed(character);
    const { state } = this.#reader;
    if (state === "undecided") this.#verbatim += character;
    else if (state === "refused") this.#release(this.#verbatim, afterRefusal);
    else {
      this.#verbatim = this.#blanks = "";
      const tails = { "tagged-call": "tagged-tail", "fenced-call": "fenced-tail" } as const;
      if (state === "done") this.#endCall(this.#place in tails ? tails[this.#place as keyof typeof tails] : "text");
    }
    if (!taken) this.#refeed(character);
  }

  #endCall(next: "text" | "tagged-tail" | "fenced-tail"): void {
    this.#place = next;
    this.#verbatim = this.#blanks = "";
    this.#afterCall = true;
  }

  /** Between a call's end and its closing marker; without one, text goes on. */
  #feedTail(character: string, marker: string, ignored: string): void {
    const held = this.#held + character;
    this.#held = "";
    if (held === marker) {
      this.#place = "text";
      this.#blanks = "";
    } else if (marker.startsWith(held)) this.#held = held;
    else if (isBlank(held)) this.#blanks += held;
    else if (!ignored.includes(held)) {
      this.#place = "text";
      this.#refeed(held);
    }
  }

  #beginFence(): void {
    this.#place = "fence-info";
    this.#verbatim = FENCE;
    this.#held = "";
  }

  #feedFenceInfo(character: string): void {
    const info = this.#verbatim.replace(/^`+/u, "");
    this.#fenceLength = this.#verbatim.length - info.length;
    const isJson = info.trim().toLowerCase() === "json";
    if (isJson && (isBlank(character) || character === "{")) {
      this.#fenceIsBlock = character === "\n";
      return this.#beginCall("fenced-call", character);
    }
    if (character === "`" && info !== "") {
      this.#release(this.#verbatim);
      return this.#refeed(character);
    }
    this.#verbatim += character;
    if (character === "\n" || info.length > MAX_INFO) this.#release(this.#verbatim, "code");
  }

  /** Ordinary code: nothing in it is a call. */
  #feedCode(character: string): void {
    this.#ticks = character === "`" && (this.#lineIsBlank || this.#ticks > 0) ? this.#ticks + 1 : 0;
    this.#writeBlanks();
    this.#write(character);
    if (this.#ticks < this.#fenceLength) return;
    this.#ticks = 0;
    this.#place = "text";
  }

  /** What was held back as a possible call is content. */
  #release(text: string, next: "text" | "code" = "text"): void {
    this.#place = next;
    this.#verbatim = "";
    const visible = text.trimEnd();
    this.#write(visible);
    this.#blanks = text.slice(visible.length);
    this.#lineIsBlank = this.#blanks.includes("\n");
  }

  #refeed(text: string): void {
    for (let i = 0; i < text.length; i++) this.#feed(text.charAt(i));
  }

  #write(text: string): void {
    if (text === "") return;
    this.#writeBlanks();
    this.#events.content(text);
    this.#afterCall = false;
    this.#lineIsBlank = text === "\n" || (this.#lineIsBlank && isBlank(text));
  }

  #writeBlanks(): void {
    if (this.#blanks !== "") this.#events.content(this.#blanks);
    this.#blanks = "";
  }
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

function newCallId(): string {
  let id = "";
  while (id.length < 24) {
    // 248 is the largest multiple of 62 in a byte: every letter is as likely.
    for (const byte of randomBytes(32)) if (byte < 248 && id.length < 24) id += LETTERS.charAt(byte % 62);
  }
  return `call_${id}`;
}
