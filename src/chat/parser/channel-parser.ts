/**
 * Harmony: every message has a header that says where it goes,
 * `<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…`. A recipient
 * (`to=functions.name`) makes it a call; one that is no tool of ours (`to=python`) makes it nothing that is told.
 * The prompt ends with the first header's `<|start|>assistant`.
 */

import { CallGate } from "./call-gate.ts";
import type { EventBuffer, OutputParserOptions, TextParser } from "./text-parser.ts";
import { isBlank } from "../formats/readers/json-scanner.ts";
import { NamedReader } from "../formats/readers/named-reader.ts";
import type { OfferedTools } from "../formats/readers/reader.ts";

type Place = "header" | "content" | "reasoning" | "call" | "ignored";
const channels = ["analysis", "commentary", "final"];

const START = "<|start|>";
const MESSAGE = "<|message|>";
/** End a message's text. */
const enders = ["<|end|>", "<|call|>", "<|return|>", START, "<|channel|>"];
/** What stands before a message that stands in no text. */
const ends = ["", "<|end|>", "<|call|>"];
const recipient = /\bto=(functions\.)?([\w.-]{1,128})/u;
/** Of a message that is for those who read the answer. */
const readers = ["assistant", "user", "all"];
const MAX_HEADER = 512;

export class ChannelParser implements TextParser {
  readonly #events: EventBuffer;
  readonly #offered: OfferedTools | null;
  readonly #gate: CallGate;
  #place: Place = "header";
  #header = "";
  /** Of a call; "" of one that stands in a text. */
  #callHeader = "";
  /** Where the text before the header was, and the marker that ended it. */
  #before: { place: Place; ender: string } = { place: "content", ender: "" };
  /** What may become a marker. */
  #held = "";
  #reader: NamedReader;
  #blanks = "";
  /** Something of this message was told; of any message of its kind. */
  #told = false;
  readonly #hasTold = { content: false, reasoning: false };

  constructor(
    { format, offered, takesCall = () => true }: OutputParserOptions,
    events: EventBuffer,
  ) {
    this.#events = events;
    this.#offered = offered;
    const options = {
      syntax: format.syntax,
      takesCall: (name: string) => takesCall(name, events.count),
      beginning: () => ({ text: this.#callHeader, isBehindCall: false, inReasoning: false }),
    };
    this.#gate = new CallGate(options, events);
    this.#reader = this.#newReader();
  }

  get inCall(): boolean {
    return this.#place === "call";
  }

  get inReasoning(): boolean {
    return this.#place === "reasoning";
  }

  feed(character: string): void {
    if (this.#place === "header") this.#feedHeader(character);
    else this.#feedText(character);
  }

  finish(natural: boolean): void {
    // A header alone, as before an end token, says nothing.
    if (this.#place === "header") return;
    for (const character of this.#held) this.#take(character);
    if (this.#place === "call" && natural) this.#reader.close();
  }

  #feedHeader(character: string): void {
    this.#header += character;
    const header = this.#header;
    if (header.endsWith(MESSAGE)) {
      this.#header = "";
      this.#begin(header);
    } else if (!looksLikeHeader(header) || header.length > MAX_HEADER) this.#takeAsText(header);
  }

  /** No header: the marker before it was text, too. */
  #takeAsText(header: string): void {
    const { place, ender } = this.#before;
    const isText = place === "reasoning" || place === "content";
    this.#header = "";
    this.#place = isText ? place : "content";
    if (isText && !header.startsWith(ender)) for (const character of ender) this.#take(character);
    this.#told = true;
    // Its first character may be a marker's: it was seen to begin none.
    this.#take(header.charAt(0));
    for (const character of header.slice(1)) this.feed(character);
  }

  #begin(header: string): void {
    this.#blanks = "";
    this.#told = false;
    const textPlace = header.includes("<|channel|>analysis") ? "reasoning" : "content";
    const [, namespace, name = "assistant"] = recipient.exec(header) ?? [];
    if (namespace !== undefined && this.#offered !== null) {
      this.#callHeader = ends.includes(this.#before.ender) ? header : "";
      this.#gate.isBarred = false;
      this.#reader = this.#newReader();
      for (const character of `${name}${MESSAGE}`) this.#reader.feed(character);
      this.#place = this.#gate.isBarred ? textPlace : "call";
      // Text, as in other formats.
      if (this.#gate.isBarred) for (const character of header) this.#take(character);
    } else if (namespace === undefined && !readers.includes(name)) this.#place = "ignored";
    else this.#place = textPlace;
  }

  #newReader(): NamedReader {
    return new NamedReader(this.#gate, { nameClose: MESSAGE });
  }

  #feedText(character: string): void {
    const held = this.#held + character;
    this.#held = "";
    const isInString = this.#place === "call" && this.#reader.inString;
    const ender = isInString ? undefined : enders.find((marker) => marker.startsWith(held));
    if (ender === held) this.#endMessage(ender);
    else if (ender !== undefined) this.#held = held;
    else {
      this.#take(held.charAt(0));
      for (let i = 1; i < held.length; i++) this.#feedText(held.charAt(i));
    }
  }

  #endMessage(ender: string): void {
    if (this.#place === "call") this.#reader.close();
    this.#before = { place: this.#place, ender };
    this.#place = "header";
    this.#header = ender === START || ender === "<|channel|>" ? ender : "";
  }

  #take(character: string): void {
    if (this.#place === "call") {
      this.#reader.feed(character);
      if (this.#reader.state === "done") this.#place = "ignored";
    } else if (this.#place === "ignored") return;
    else if (isBlank(character)) this.#blanks += character;
    else {
      const text = (this.#told ? this.#blanks : "") + character;
      this.#tell(this.#place === "reasoning" ? "reasoning" : "content", text);
      this.#told = true;
      this.#blanks = "";
    }
  }

  /** Each message begins on a line of its own. */
  #tell(kind: "content" | "reasoning", text: string): void {
    const isNext = !this.#told && this.#hasTold[kind];
    this.#hasTold[kind] = true;
    this.#events[kind](isNext ? `\n${text}` : text);
  }
}

/** `<|start|>role`, a recipient, a channel, a constraint, in any beginning of them. */
function looksLikeHeader(text: string): boolean {
  const visible = text.trimStart();
  if (visible === "") return true;
  if (/^<\|start\|>[\w.:-]*[^\w.:\s<-]/u.test(visible)) return false;
  const channel = visible.split("<|channel|>")[1]?.trimStart() ?? "";
  if (!channels.some((name) => name.startsWith(channel) || channel.startsWith(name))) return false;
  const openings = [START, "<|channel|>", "to=", "<|constrain|>", MESSAGE];
  return openings.some((opening) => opening.startsWith(visible) || visible.startsWith(opening));
}
