/** Finds calls in text: after the format's markers, bare at the start of a line, in a ```json block. */

import type { ToolCallFormat } from "../formats/format.ts";
import { byFirstCharacter } from "../formats/readers/forms.ts";
import { isBlank } from "../formats/readers/json-scanner.ts";
import type {
  CallReader,
  MakeReader,
  OfferedTools,
  ReaderState,
} from "../formats/readers/reader.ts";
import { CallGate, type GuidedSink } from "./call-gate.ts";
import { MarkdownPlace } from "./markdown-place.ts";

export interface FinderSink extends GuidedSink {
  content(text: string): void;
}

export interface FinderOptions {
  format: ToolCallFormat;
  /** Null: no call is looked for, all is content. */
  offered: OfferedTools | null;
  /** Is this a call, by its name? What is refused is content. */
  takesCall: (name: string) => boolean;
}

type CallPlace = "marked-call" | "bare-call" | "fenced-call";
type Place = "text" | CallPlace | "marked-tail" | "fenced-tail" | "fence-info" | "code";

const FENCE = "```";
/** What a block of calls says of itself. */
const callBlocks: ReadonlySet<string> = new Set(["", "json", "tool_call"]);
/** A longer line after a fence's ticks is not told apart any more. */
const MAX_INFO = 64;
const placeAfter = {
  "marked-call": "marked-tail",
  "fenced-call": "fenced-tail",
  "bare-call": "text",
} as const;

export class CallFinder {
  readonly #format: ToolCallFormat;
  readonly #offered: OfferedTools | null;
  readonly #sink: FinderSink;
  readonly #gate: CallGate;
  readonly #makeBare: MakeReader;
  readonly #hasBare: boolean;
  #place: Place = "text";
  #reader: CallReader;
  /** Blanks that are dropped if a call follows. */
  #blanks = "";
  /** What may become a marker. */
  #held = "";
  /** What may become a call; content if it does not. */
  #verbatim = "";
  /** Where the text stands, with the blanks that are held back. */
  #markdown = new MarkdownPlace();
  #fenceLength = 0;
  /** The fence's content is on lines of its own. */
  #fenceIsBlock = false;
  #ticks = 0;
  #afterCall = false;
  #hasText = false;
  /** Only calls behind markers are looked for. */
  marksOnly = false;
  /** Dropped where nobody speaks of them. */
  silentMarkers: readonly string[];

  constructor({ format, offered, takesCall }: FinderOptions, sink: FinderSink) {
    this.#format = format;
    this.silentMarkers = format.silentMarkers;
    this.#offered = offered;
    this.#sink = sink;
    const beginning = () => ({
      text: this.#blanks + this.#verbatim,
      isBehindCall: this.#afterCall,
      inReasoning: this.marksOnly,
    });
    this.#gate = new CallGate({ syntax: format.syntax, takesCall, beginning }, sink);
    this.#makeBare = byFirstCharacter(format.bareCalls);
    this.#hasBare = Object.keys(format.bareCalls).length > 0;
    this.#reader = this.#makeBare(this.#gate, offered);
  }

  /** Nothing is held back but blanks. */
  get isIdle(): boolean {
    return this.#place === "text" && this.#held === "";
  }

  /** Blanks, and a section's opening, that are dropped if a call follows. */
  get blanks(): string {
    return this.#blanks;
  }

  get inCall(): boolean {
    return this.#place in placeAfter;
  }

  /** A call has ended, and nothing but blanks has followed. */
  get isBehindCall(): boolean {
    return this.#place === "marked-tail" || (this.isIdle && this.#afterCall);
  }

  /** Neither in what may be a call, nor in code, nor in a quotation. */
  get isInProse(): boolean {
    return this.isBehindCall || (this.isIdle && !this.#markdown.isSpokenOf);
  }

  /** The same, and in no line. */
  get isBetweenLines(): boolean {
    return this.isBehindCall || (this.isInProse && this.#markdown.lineIsBlank);
  }

  /** A marker that is not a call's: what is held back is text. @param keepBlanks those at its end, too */
  interrupt(keepBlanks: boolean): void {
    this.#gate.isUnsure = true;
    if (this.inCall) this.#release(this.#verbatim);
    this.#write(this.#held);
    this.#held = "";
    if (keepBlanks && !this.#afterCall) this.#writeBlanks();
    this.#blanks = "";
    this.#place = "text";
    this.#markdown = new MarkdownPlace();
  }

  feed(character: string): void {
    switch (this.#place) {
      case "text":
        return this.#feedText(character);
      case "marked-call":
        return this.#feedMarked(character);
      case "bare-call":
        return this.#feedReader("bare-call", character);
      case "fenced-call":
        if (character === "\n") this.#fenceIsBlock = true;
        return this.#feedReader("fenced-call", character);
      case "marked-tail":
        return this.#feedTail(character, this.#format.callClose, this.#format.ignoredAfterCall);
      case "fenced-tail":
        if (character in this.#format.bareCalls && this.#held === "")
          return this.#beginCall("fenced-call", character);
        return this.#feedTail(character, FENCE, "");
      case "fence-info":
        return this.#feedFenceInfo(character);
      case "code":
        return this.#feedCode(character);
    }
  }

  /** @param natural false: cut. What follows a call's marker is then a call's beginning, not text. */
  finish(natural: boolean): void {
    if (this.#place === "marked-call") this.#feedHeldToReader();
    // What was cut in a call's closing marker, or in the opening one after a call or before any text, is no text.
    const cutInMarker = this.#afterCall || (!this.#hasText && this.#holdsOpening);
    if (!natural && (this.#place === "marked-tail" || cutInMarker)) this.#held = this.#blanks = "";
    const isUndecided = this.inCall && this.#state === "undecided";
    if (isUndecided && !natural && this.#place === "marked-call")
      this.#verbatim = this.#blanks = "";
    else if (isUndecided) this.#release(this.#verbatim);
    else if (this.inCall && natural && this.#state === "call") this.#reader.close();
    else if (!this.inCall) {
      if (this.#place === "fence-info") this.#release(this.#verbatim);
      this.#write(this.#held);
    }
    if (!this.#afterCall) this.#writeBlanks();
  }

  #feedText(character: string): void {
    const { callOpen, sectionOpen, sectionClose, unmarked } = this.#format;
    if (this.#offered === null && this.silentMarkers.length === 0) return this.#write(character);
    if (this.#held === "" && isBlank(character)) return this.#holdBlank(character);
    const held = this.#held + character;
    this.#held = "";
    if (this.#silentMarkers.includes(held)) this.#markdown.feed("\n");
    else if (this.#offered === null) this.#keepOrWrite(held, false);
    else if (held === callOpen) this.#beginCall("marked-call", held);
    else if (held === unmarked?.open) this.#beginUnmarked(held);
    else if (held === sectionOpen) this.#beginSection(held);
    else if (this.#inSection && held === sectionClose) this.#endSection();
    else if (this.#afterCall && held === this.#format.bareSeparator) this.#blanks += held;
    else if (this.#mayBeBare && held === FENCE) this.#beginFence();
    else if (this.#mayBeBare && held in this.#format.bareCalls) this.#beginCall("bare-call", held);
    else this.#keepOrWrite(held, true);
  }

  get #mayBeBare(): boolean {
    return this.#hasBare && this.#markdown.lineIsBlank && !this.marksOnly;
  }

  /** One that is spoken of is text. Behind another one a message begins. */
  get #silentMarkers(): readonly string[] {
    return this.#markdown.isSpokenOf ? [] : this.silentMarkers;
  }

  #holdBlank(blank: string): void {
    this.#blanks += blank;
    this.#markdown.feed(blank);
  }

  /** After a call, or after a section's opening marker. */
  get #inSection(): boolean {
    return this.#afterCall || this.#sectionStart >= 0;
  }

  /** Where a section's opening marker stands in the blanks, or -1. */
  get #sectionStart(): number {
    const { sectionOpen } = this.#format;
    return sectionOpen === "" ? -1 : this.#blanks.indexOf(sectionOpen);
  }

  #beginSection(opening: string): void {
    this.#blanks += opening;
    this.#markdown.feed("\n");
  }

  /** A section without calls says nothing. */
  #endSection(): void {
    this.#blanks = this.#blanks.slice(0, Math.max(this.#sectionStart, 0));
  }

  #keepOrWrite(held: string, withCalls: boolean): void {
    if (this.#mayBecomeMarker(held, withCalls)) this.#held = held;
    else {
      this.#write(held.charAt(0));
      this.#refeed(held.slice(1));
    }
  }

  #mayBecomeMarker(held: string, withCalls: boolean): boolean {
    const { callOpen, sectionOpen, sectionClose, unmarked } = this.#format;
    if (this.#silentMarkers.some((marker) => marker.startsWith(held))) return true;
    return (
      withCalls &&
      (callOpen.startsWith(held) ||
        sectionOpen.startsWith(held) ||
        unmarked?.open.startsWith(held) === true ||
        (this.#inSection && sectionClose.startsWith(held)) ||
        (this.#mayBeBare && FENCE.startsWith(held)))
    );
  }

  /** What is held back is the beginning of a call's, or a section's, opening marker. */
  get #holdsOpening(): boolean {
    const { callOpen, sectionOpen } = this.#format;
    const held = this.#held;
    return held !== "" && (callOpen.startsWith(held) || sectionOpen.startsWith(held));
  }

  get #state(): ReaderState {
    return this.#gate.isBarred ? "refused" : this.#reader.state;
  }

  #beginCall(place: CallPlace, opening: string): void {
    this.#place = place;
    this.#gate.isBarred = false;
    this.#verbatim += opening;
    if (place === "marked-call") {
      this.#reader = this.#format.reader(this.#gate, this.#offered);
      return;
    }
    this.#reader = this.#makeBare(this.#gate, this.#offered);
    this.#reader.feed(opening);
  }

  /** Its opening is its reader's. */
  #beginUnmarked(opening: string): void {
    const { unmarked } = this.#format;
    if (unmarked === null) return;
    this.#place = "marked-call";
    this.#gate.isBarred = false;
    this.#verbatim += opening;
    this.#reader = unmarked.reader(this.#gate, this.#offered);
    for (const character of opening) this.#reader.feed(character);
  }

  #feedMarked(character: string): void {
    const { callClose } = this.#format;
    const held = this.#held + character;
    this.#held = "";
    if (this.#reader.inString || !callClose.startsWith(held)) {
      this.#feedReader("marked-call", held.charAt(0));
      this.#refeed(held.slice(1));
    } else if (held !== callClose) this.#held = held;
    else {
      this.#reader.close();
      if (this.#state === "refused") this.#release(this.#verbatim + callClose);
      else this.#endCall("text");
    }
  }

  /** What was held as a possible closing tag belongs to the call. */
  #feedHeldToReader(): void {
    const held = this.#held;
    this.#held = "";
    for (const character of held) {
      if (this.#place === "marked-call") this.#feedReader("marked-call", character);
      else this.feed(character);
    }
  }

  #feedReader(place: CallPlace, character: string): void {
    const isTaken = this.#reader.feed(character) && !this.#gate.isBarred;
    const state = this.#state;
    if (state === "undecided") this.#verbatim += character;
    else if (state === "refused")
      this.#release(
        this.#verbatim,
        place === "fenced-call" && this.#fenceIsBlock ? "code" : "text",
      );
    else if (state === "done") this.#endCall(placeAfter[place]);
    else {
      this.#verbatim = this.#blanks = "";
      this.#afterCall = state === "between";
    }
    if (!isTaken) this.feed(character);
  }

  #endCall(next: "text" | "marked-tail" | "fenced-tail"): void {
    const hasTail = next !== "marked-tail" || this.#format.callClose !== "";
    this.#place = hasTail ? next : "text";
    this.#verbatim = this.#blanks = "";
    this.#afterCall = true;
  }

  /** Between a call's end and its closing marker; without one, text goes on. */
  #feedTail(character: string, marker: string, ignored: string): void {
    const held = this.#held + character;
    this.#held = "";
    if (held === marker) this.#endCall("text");
    else if (marker.startsWith(held)) this.#held = held;
    else if (isBlank(held)) this.#holdBlank(held);
    else if (!ignored.includes(held)) {
      this.#place = "text";
      this.#refeed(held);
    }
  }

  #beginFence(): void {
    this.#gate.isUnsure = true;
    this.#place = "fence-info";
    this.#verbatim = FENCE;
  }

  #feedFenceInfo(character: string): void {
    const info = this.#verbatim.replace(/^`+/u, "");
    this.#fenceLength = this.#verbatim.length - info.length;
    const mayCall = isBlank(character) || character in this.#format.bareCalls;
    if (callBlocks.has(info.trim().toLowerCase()) && mayCall) {
      this.#fenceIsBlock = character === "\n";
      this.#beginCall("fenced-call", character);
    } else if (character === "`" && info !== "") {
      this.#release(this.#verbatim);
      this.feed(character);
    } else {
      this.#verbatim += character;
      if (character === "\n" || info.length > MAX_INFO) this.#release(this.#verbatim, "code");
    }
  }

  /** Ordinary code: nothing in it is a call. */
  #feedCode(character: string): void {
    const isFence = character === "`" && (this.#markdown.lineIsBlank || this.#ticks > 0);
    this.#ticks = isFence ? this.#ticks + 1 : 0;
    this.#write(character);
    if (this.#ticks < this.#fenceLength) return;
    this.#ticks = 0;
    this.#place = "text";
  }

  /** What was held back as a possible call is content. */
  #release(text: string, next: "text" | "code" = "text"): void {
    this.#place = next;
    this.#verbatim = "";
    if (text.includes(FENCE)) this.#gate.isUnsure = true;
    const visible = text.trimEnd();
    this.#write(visible);
    for (const blank of text.slice(visible.length)) this.#holdBlank(blank);
  }

  #refeed(text: string): void {
    for (let i = 0; i < text.length; i++) this.feed(text.charAt(i));
  }

  #write(text: string): void {
    if (text === "") return;
    this.#writeBlanks();
    this.#sink.content(text);
    this.#afterCall = false;
    this.#hasText ||= text.trim() !== "";
    this.#markdown.feed(text);
  }

  #writeBlanks(): void {
    if (this.#blanks !== "") this.#sink.content(this.#blanks);
    this.#blanks = "";
  }
}
