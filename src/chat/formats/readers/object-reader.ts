/**
 * Reads the JSON object of one call, a character at a time: `name` and `arguments` (or `parameters`)
 * in any order. Tells as early as it can that this is a call, then streams the arguments. The object's brackets may
 * be doubled: the template of Qwen2.5-Coder shows them so.
 */

import { isJsonObject, parseJson } from "../../../json.ts";
import { JsonScanner, isBlank } from "./json-scanner.ts";
import type { CallReader, CallSink, OfferedTools, ReaderState } from "./reader.ts";

type Place =
  | "open"
  | "key-or-end"
  | "key"
  | "in-key"
  | "colon"
  | "value"
  | "in-value"
  | "comma-or-end"
  | "malformed";

const argumentKeys: ReadonlySet<string> = new Set(["arguments", "parameters"]);
const nameKeys: ReadonlySet<string> = new Set(["name", "tool_name", "function"]);
const otherKeys = ["id", "type", "tool_call_id"];
const bareKeys: ReadonlySet<string> = new Set([...argumentKeys, ...nameKeys, ...otherKeys]);

export class ObjectReader implements CallReader {
  readonly #sink: CallSink;
  /** Null: tags told that a call is meant; any name will do, and arguments may be missing or malformed. */
  readonly #offered: OfferedTools | null;
  #state: ReaderState = "undecided";
  #place: Place = "open";
  #scanner = new JsonScanner();
  #key = "";
  #name: string | null = null;
  /** Complete arguments that wait for the name. */
  #arguments: string | null = null;
  /** The key or value being read, unless it is streamed. */
  #collected = "";
  #streaming = false;
  /** The object's brackets; its last one is left to read. */
  #isDoubled = false;
  #ended = false;
  #taken = true;

  constructor(sink: CallSink, offered: OfferedTools | null) {
    this.#sink = sink;
    this.#offered = offered;
  }

  get state(): ReaderState {
    return this.#state;
  }

  get inString(): boolean {
    return this.#place === "in-key" || (this.#place === "in-value" && this.#scanner.inString);
  }

  feed(character: string): boolean {
    this.#taken = true;
    for (const piece of this.#scanner.repaired(character)) this.#step(piece);
    return this.#taken && this.#state !== "refused";
  }

  close(): void {
    if (this.#state === "call") {
      if (this.#streaming && this.#place === "in-value")
        this.#sink.arguments(this.#scanner.missing);
      this.#end();
    }
    this.#state = this.#state === "call" ? "done" : "refused";
  }

  #step(character: string): void {
    switch (this.#place) {
      case "malformed":
        return this.#takeMalformed(character);
      case "in-key":
        return this.#takeKey(character);
      case "in-value":
        return this.#takeValue(character);
      default:
        if (!isBlank(character)) this.#place = this.#visible(character) ?? this.#place;
    }
  }

  #visible(character: string): Place | undefined {
    switch (this.#place) {
      case "open":
        return character === "{" ? "key-or-end" : this.#fail();
      case "key":
      case "key-or-end":
        if (character === '"') return this.#beginKey();
        if (character === "{" && this.#place === "key-or-end" && !this.#isDoubled) {
          this.#isDoubled = true;
          return undefined;
        }
        return character === "}" && this.#place === "key-or-end" ? this.#finish() : this.#fail();
      case "colon":
        return character === ":" ? "value" : this.#fail();
      case "comma-or-end":
        if (character === ",") return "key";
        if (character !== "}") return this.#fail();
        if (!this.#isDoubled) return this.#finish();
        this.#isDoubled = false;
        return undefined;
      default:
        return this.#beginValue(character);
    }
  }

  #beginKey(): Place {
    this.#beginScan();
    this.#takeScanned('"');
    return "in-key";
  }

  #takeKey(character: string): void {
    const result = this.#takeScanned(character);
    if (result === "error") this.#place = this.#fail() ?? this.#place;
    if (result !== "end") return;
    this.#key = parseString(this.#collected) ?? "";
    this.#place = "colon";
    if (this.#offered !== null && !bareKeys.has(this.#key)) this.#state = "refused";
  }

  #beginValue(character: string): undefined {
    this.#beginScan();
    const isArguments = this.#takesArguments();
    if (isArguments && this.#offered !== null && character !== "{" && character !== '"') {
      this.#state = "refused";
      return;
    }
    this.#streaming = isArguments && character === "{" && this.#name !== null;
    if (this.#streaming) this.#start();
    this.#place = "in-value";
    this.#takeValue(character);
  }

  #takeValue(character: string): void {
    const result = this.#takeScanned(character);
    if (result === "more") return;
    if (result === "error") {
      this.#place = this.#fail(character) ?? this.#place;
      return;
    }
    this.#place = "comma-or-end";
    this.#endValue();
    if (result === "end-before" && this.#state !== "refused") this.#step(character);
  }

  #beginScan(): void {
    this.#scanner = new JsonScanner();
    this.#collected = "";
    this.#streaming = false;
  }

  #takeScanned(character: string): ReturnType<JsonScanner["feed"]> {
    const result = this.#scanner.feed(character);
    if (result === "error" || result === "end-before") return result;
    if (this.#streaming) this.#sink.arguments(character);
    else this.#collected += character;
    return result;
  }

  #endValue(): void {
    if (this.#streaming) this.#end();
    else if (this.#takesArguments()) this.#giveArguments(this.#collected);
    else if (this.#namesTool()) this.#giveName(this.#collected);
  }

  #takesArguments(): boolean {
    return argumentKeys.has(this.#key) && this.#arguments === null && !this.#ended;
  }

  /** A "function" may be an object, too. */
  #namesTool(): boolean {
    const isName = this.#key === "name" || this.#collected.startsWith('"');
    return isName && nameKeys.has(this.#key) && this.#name === null;
  }

  /** An object, or: JSON in a string, null for none, or what the tool will refuse. */
  #giveArguments(value: string): void {
    const text = value.startsWith('"')
      ? (parseString(value) ?? "")
      : value === "null"
        ? "{}"
        : value;
    this.#arguments = text;
    if (this.#offered !== null && !isJsonObject(parseJson(text))) this.#state = "refused";
    else if (this.#name !== null) this.#tell();
  }

  #giveName(value: string): void {
    const name = parseString(value);
    if (!name || (this.#offered !== null && !this.#offered.has(name))) {
      this.#state = "refused";
      return;
    }
    this.#name = name;
    if (this.#arguments !== null) this.#tell();
  }

  #start(): void {
    this.#state = "call";
    this.#sink.start(this.#name ?? "");
  }

  #tell(): void {
    this.#start();
    this.#sink.arguments(this.#arguments ?? "{}");
    this.#end();
  }

  #end(): void {
    if (!this.#ended) this.#sink.end();
    this.#ended = true;
  }

  #finish(): undefined {
    if (this.#state === "undecided" && this.#name !== null && this.#offered === null) this.#tell();
    this.#state = this.#state === "call" ? "done" : "refused";
  }

  /** Nothing that was told is taken back: what follows in started arguments is still theirs. */
  #fail(character = ""): Place | undefined {
    if (this.#state === "undecided") this.#state = "refused";
    else if (this.#ended) {
      this.#state = "done";
      this.#taken = false;
    } else {
      this.#collected = "";
      this.#takeMalformed(character);
      return "malformed";
    }
    return undefined;
  }

  /** The object's own last bracket and the blanks around it are not the arguments'. */
  #takeMalformed(character: string): void {
    const held = this.#collected;
    if (isBlank(character)) this.#collected = held + character;
    else if (character === "}") {
      const kept = held.indexOf("}") + 1;
      this.#sink.arguments(held.slice(0, kept));
      this.#collected = held.slice(kept) + character;
    } else {
      this.#sink.arguments(held + character);
      this.#collected = "";
    }
  }
}

function parseString(json: string): string | undefined {
  const value = parseJson(json);
  return typeof value === "string" ? value : undefined;
}
