/** Reads calls whose arguments are literals: `[name(key='value'), …]`, `call:name{key:<escape>value<escape>}`. */

import { isBlank } from "./json-scanner.ts";
import { type LiteralSyntax, LiteralTranscoder } from "./literals.ts";
import { asName } from "./named-reader.ts";
import type { CallReader, CallSink, OfferedTools, ReaderState } from "./reader.ts";

export interface LiteralCalls extends LiteralSyntax {
  /** Before the name, or "". */
  nameOpen: string;
  /** After the name, or "". */
  nameClose: string;
  /** Opens the arguments. */
  open: "(" | "{";
  /** There may be several: in brackets and separated by commas, or one behind the other on lines. */
  several: "list" | "lines" | null;
}

const MAX_NAME = 256;

export class LiteralReader implements CallReader {
  readonly #sink: CallSink;
  readonly #calls: LiteralCalls;
  readonly #offered: OfferedTools | null;
  #state: ReaderState = "undecided";
  #name = "";
  #arguments: LiteralTranscoder | null = null;
  #isMalformed = false;
  #inList = false;

  /** @param offered null: a marker told that a call is meant; any name will do */
  constructor(sink: CallSink, calls: LiteralCalls, offered: OfferedTools | null = null) {
    this.#sink = sink;
    this.#offered = offered;
    this.#calls = calls;
  }

  get state(): ReaderState {
    return this.#state;
  }

  get inString(): boolean {
    return !this.#isMalformed && (this.#arguments?.inString ?? false);
  }

  feed(character: string): boolean {
    if (this.#isMalformed) this.#sink.arguments(character);
    else if (this.#arguments !== null) this.#feedArguments(this.#arguments, character);
    else if (this.#state === "between") return this.#feedBetween(character);
    else this.#feedName(character);
    return this.#state !== "refused";
  }

  close(): void {
    if (this.#state === "call") {
      this.#sink.end();
      this.#state = "done";
    } else this.#state = this.#state === "between" ? "done" : "refused";
  }

  #feedArguments(transcoder: LiteralTranscoder, character: string): void {
    const result = transcoder.feed(character);
    if (result === "error") {
      this.#isMalformed = true;
      this.#sink.arguments(character);
    }
    if (result !== "end") return;
    this.#sink.end();
    this.#arguments = null;
    this.#name = "";
    this.#state = this.#inList || this.#calls.several === "lines" ? "between" : "done";
  }

  #feedBetween(character: string): boolean {
    if (isBlank(character)) return true;
    if (!this.#inList) {
      this.#state = "undecided";
      this.#feedName(character);
      return true;
    }
    if (character === ",") this.#state = "undecided";
    else this.#state = "done";
    return character === "," || character === "]";
  }

  #feedName(character: string): void {
    const { several, open, nameOpen, nameClose } = this.#calls;
    if (this.#name === "" && isBlank(character)) return;
    if (this.#name === "" && several === "list" && !this.#inList && character === "[") {
      this.#inList = true;
      return;
    }
    if (character !== open) {
      this.#name += character;
      if (this.#name.length > MAX_NAME) this.#state = "refused";
      return;
    }
    const hasOpen = this.#name.startsWith(nameOpen);
    const closeAt = nameClose === "" ? -1 : this.#name.lastIndexOf(nameClose);
    const end = closeAt < 0 ? this.#name.length : closeAt;
    const name = hasOpen ? asName(this.#name.slice(nameOpen.length, end)) : null;
    if (name === null || this.#offered?.has(name) === false) {
      this.#state = "refused";
      return;
    }
    this.#state = "call";
    this.#sink.start(name);
    this.#arguments = new LiteralTranscoder(this.#calls, (json) => this.#sink.arguments(json));
    this.#arguments.feed(character);
  }
}
