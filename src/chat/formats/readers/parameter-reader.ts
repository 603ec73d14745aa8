/** Reads a name and parameters between markers; gives the arguments as JSON. */

import { JsonScanner, isBlank } from "./json-scanner.ts";
import { asName } from "./named-reader.ts";
import {
  type EndOfValue,
  type ParameterCalls,
  endsCall,
  keyIn,
  keyOf,
  valueEnd,
} from "./parameter-markers.ts";
import { ParameterValue } from "./parameter-value.ts";
import { type PlacedSchema, propertiesOf, propertyOf } from "./value-schema.ts";
import type { CallReader, CallSink, OfferedTools, ReaderState } from "./reader.ts";

type Place = "open" | "name" | "between" | "json" | "key" | "value-open" | "value" | "over";

const CDATA = "<![CDATA[";
const CDATA_END = "]]>";

const MAX_NAME = 256;

export class ParameterReader implements CallReader {
  readonly #sink: CallSink;
  readonly #calls: ParameterCalls;
  /** Schemas, for the types of values. */
  readonly #tools: OfferedTools | null;
  #state: ReaderState = "undecided";
  #place: Place = "open";
  /** What may become a marker. */
  #held = "";
  #text = "";
  #name = "";
  /** The keys of the parameters so far. */
  readonly #given = new Set<string>();
  /** Of the tool; null: not known. */
  #properties: ReadonlySet<string> | null = null;
  /** Arguments that are written as one JSON object. */
  readonly #json = new JsonScanner();
  #inCdata = false;
  #valueClose = "";
  #value: ParameterValue | null = null;
  /** Whether the value is a string, where the parameter says so. */
  #isString: boolean | undefined;

  constructor(sink: CallSink, calls: ParameterCalls, tools: OfferedTools | null) {
    this.#sink = sink;
    this.#calls = calls;
    this.#tools = tools;
    if (calls.nameOpen === "") this.#place = "name";
  }

  get state(): ReaderState {
    return this.#state;
  }

  get inString(): boolean {
    return this.#place === "value" || (this.#place === "json" && this.#json.inString);
  }

  feed(character: string): boolean {
    switch (this.#place) {
      case "open":
        this.#skipTo(character, this.#calls.nameOpen, "name");
        break;
      case "name":
        this.#feedName(character);
        break;
      case "between":
        this.#feedBetween(character);
        break;
      case "json":
        this.#feedJson(character);
        break;
      case "key":
        this.#feedKey(character);
        break;
      case "value-open":
        this.#skipTo(character, this.#calls.value[0], "value");
        break;
      case "value":
        this.#feedValue(character);
        break;
      case "over":
        break;
    }
    return this.#state !== "refused";
  }

  close(): void {
    if (this.#state === "undecided") this.#closeAtName();
    if (this.#state !== "call") return;
    const isClosed = this.#held.startsWith(this.#valueClose);
    if (!isClosed && this.#endOfValue(this.#held) !== "tail") this.#value?.push(this.#held);
    this.#endValue();
    this.#end();
  }

  /** A name and nothing else is a call without arguments, if there is such a tool. */
  #closeAtName(): void {
    const name = asName(this.#text);
    if (this.#place === "name" && name !== null && this.#tools?.has(name) === true)
      this.#start(name);
    else this.#state = "refused";
  }

  #start(name: string): void {
    this.#name = name;
    this.#properties = propertiesOf(this.#tools?.get(name));
    this.#state = "call";
    this.#sink.start(name);
    this.#place = "between";
  }

  /** Blanks, then the marker, or it is no call. */
  #skipTo(character: string, marker: string, next: "name" | "value"): void {
    if (this.#held === "" && isBlank(character)) return;
    this.#held += character;
    if (this.#held === marker) {
      this.#held = "";
      this.#place = next;
      if (next === "value") this.#beginValue();
    } else if (!marker.startsWith(this.#held)) {
      // What was told stays; a value without its opening marker begins here.
      if (this.#state === "undecided") this.#state = "refused";
      else {
        this.#place = "value";
        this.#beginValue();
        this.#refeed();
      }
    }
  }

  #feedName(character: string): void {
    const isOver = this.#calls.nameEnd.includes(character) && this.#text.trim() !== "";
    if (!isOver) {
      this.#text += character;
      if (this.#text.length > MAX_NAME) this.#state = "refused";
      return;
    }
    const name = asName(this.#text);
    if (name === null || (this.#calls.offeredOnly === true && this.#tools?.has(name) !== true)) {
      this.#state = "refused";
      return;
    }
    this.#start(name);
    if (character === "<") this.#feedBetween(character);
  }

  /** What is neither a parameter nor the end is left out: the call was told. */
  #feedBetween(character: string): void {
    const { end } = this.#calls;
    const [keyOpen] = this.#calls.key;
    const held = this.#held + character;
    this.#held = "";
    if (held === "{" && this.#given.size === 0) {
      this.#place = "json";
      this.#feedJson(held);
    } else if (held === keyOpen) {
      this.#text = "";
      this.#place = "key";
    } else if (held === end) this.#end();
    else if (keyOpen.startsWith(held) || (end !== "" && end.startsWith(held))) this.#held = held;
    else if (held.length > 1) {
      for (const rest of held.slice(1)) if (this.#state === "call") this.feed(rest);
    }
  }

  #feedJson(character: string): void {
    for (const piece of this.#json.repaired(character)) {
      const result = this.#json.feed(piece);
      this.#sink.arguments(piece);
      if (result === "more") continue;
      this.#place = result === "end" ? "between" : "over";
    }
  }

  #feedKey(character: string): void {
    this.#text += character;
    const { key, value } = this.#calls;
    if (!this.#text.endsWith(key[1])) return;
    this.#setKey(this.#text.slice(0, -key[1].length));
    if (value[0] === "") {
      this.#place = "value";
      this.#beginValue();
    } else this.#place = "value-open";
  }

  /** @param text between the markers of a key */
  #setKey(text: string): void {
    const { key, isString } = keyOf(text, this.#calls);
    this.#text = key;
    this.#isString = isString;
  }

  #beginValue(): void {
    const separator = this.#given.size === 0 ? "{" : ",";
    this.#sink.arguments(`${separator}${JSON.stringify(this.#text)}:`);
    this.#given.add(this.#text);
    const { valueEnd: end, elementMark } = this.#calls;
    this.#valueClose = end.close.replace("$key", () => this.#text);
    this.#value = new ParameterValue({
      schema: this.#schemaOf(this.#text),
      elementMark,
      onLines: end.line !== "",
      emit: (text) => this.#sink.arguments(text),
    });
  }

  /** What the parameter itself says counts. */
  #schemaOf(key: string): PlacedSchema | null {
    if (this.#isString === undefined) return propertyOf(this.#tools?.get(this.#name), key);
    return this.#isString ? { schema: { type: "string" }, root: null } : null;
  }

  #feedValue(character: string): void {
    const held = this.#held + character;
    this.#held = "";
    if (this.#inCdata) return this.#feedCdata(held);
    // The grammar's JSON may have any text in its strings.
    if (this.#value?.inJsonString === true) return this.#value.push(held);
    if (this.#calls.hasCdata === true && this.#value?.isEmpty === true && CDATA.startsWith(held)) {
      this.#inCdata = held === CDATA;
      this.#held = this.#inCdata ? "" : held;
      return;
    }
    switch (this.#endOfValue(held)) {
      case "close": {
        const behind = held.slice(this.#valueClose.length);
        this.#endValue();
        if (endsCall(behind, this.#calls)) this.#end();
        else this.#place = "between";
        for (const rest of behind) if (this.#state === "call") this.feed(rest);
        break;
      }
      case "key":
        this.#endValue();
        this.#setKey(keyIn(held, this.#calls));
        this.#place = "value";
        this.#beginValue();
        break;
      case "call":
        this.#endValue();
        this.#end();
        this.#restart();
        break;
      case "none":
        this.#value?.push(held.charAt(0));
        this.#held = held.slice(1);
        this.#refeed();
        break;
      default:
        this.#held = held;
    }
  }

  #endOfValue(held: string): EndOfValue {
    return valueEnd(held, this.#calls, {
      close: this.#valueClose,
      isLineStart: this.#value?.isLineStart === true,
      mayFollow: (key) => !this.#given.has(key) && this.#properties?.has(key) !== false,
    });
  }

  #feedCdata(held: string): void {
    if (held === CDATA_END) this.#inCdata = false;
    else if (CDATA_END.startsWith(held)) this.#held = held;
    else {
      this.#value?.push(held.charAt(0));
      this.#held = held.slice(1);
      this.#refeed();
    }
  }

  /** The next call's opening was read as the end of a value. */
  #restart(): void {
    this.#state = "undecided";
    this.#place = this.#calls.nameOpen === "" ? "name" : "open";
    this.#text = "";
    this.#given.clear();
  }

  #refeed(): void {
    const held = this.#held;
    this.#held = "";
    for (let i = 0; i < held.length; i++) this.#feedValue(held.charAt(i));
  }

  #endValue(): void {
    this.#value?.end();
    this.#value = null;
  }

  #end(): void {
    const isGiven = this.#json.hasBegun;
    this.#sink.arguments(isGiven ? this.#json.missing : this.#given.size === 0 ? "{}" : "}");
    this.#sink.end();
    this.#place = "over";
    this.#state = "done";
  }
}
