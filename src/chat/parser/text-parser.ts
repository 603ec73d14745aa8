/** What the parsers of a round's text have in common: what they take, the events that they collect, and when a round goes in circles. */

import type { RoundReasoning } from "../../guidance/types.ts";
import type { ChatEvent, ToolCall } from "../types.ts";
import type { ToolCallFormat } from "../formats/format.ts";
import type { OfferedTools } from "../formats/readers/reader.ts";
import type { FinderSink } from "./call-finder.ts";
import { randomBytes } from "node:crypto";
import { parseExactJson } from "../../json.ts";
import { canonicalArguments } from "../template/normalize.ts";

export type OutputEvent = Extract<
  ChatEvent,
  { type: "reasoning" | "content" | "call-start" | "call-arguments" | "call-end" }
>;

export interface OutputParserOptions {
  format: ToolCallFormat;
  /** The offered tools; null when no call is looked for. */
  offered: OfferedTools | null;
  /** Is the round's call number `index` one, by its name? What is refused is text. Default: yes. */
  takesCall?: ((name: string, index: number) => boolean) | undefined;
  reasoning: RoundReasoning;
  newCallId?: (() => string) | undefined;
  /** The round ends before the third of its calls that are equal. Default: there may be any number. */
  stopsRepetition?: boolean | undefined;
}

/** Works a character at a time. */
export interface TextParser {
  /** The text ends inside of what is, or may become, a call. */
  readonly inCall: boolean;
  /** The text ends inside of reasoning that was not closed. */
  readonly inReasoning: boolean;
  feed(character: string): void;
  /** @param natural the model ended its turn; else the text was cut and an open call stays incomplete. */
  finish(natural: boolean): void;
}

/**
 * Collects the events of a push; joins neighbours of one kind. While a call may become the third of equal ones, its
 * events wait: it is told when it is another one, and dropped when it is not.
 */
export class EventBuffer implements FinderSink {
  readonly #calls: ToolCall[];
  readonly #newCallId: () => string;
  /** Those that were calls for the grammar, too. */
  readonly #guided = new WeakSet<ToolCall>();
  #events: OutputEvent[] = [];
  #kind: "" | "content" | "reasoning" | "arguments" = "";
  #text: string[] = [];
  #index = -1;
  #id = "";
  #name = "";
  #isGuided = false;
  #arguments: string[] = [];
  /** Null: calls may be equal. */
  readonly #repeated: RepeatedCalls | null;
  /** The call that is being written has not been told. */
  #waits = false;
  #endsEarly = false;

  /** @param calls complete calls are appended */
  constructor(
    calls: ToolCall[],
    { newCallId: idOf = newCallId, stopsRepetition = false }: Partial<OutputParserOptions>,
  ) {
    this.#calls = calls;
    this.#newCallId = idOf;
    this.#repeated = stopsRepetition ? new RepeatedCalls() : null;
  }

  /** A call was one too many: the round ends before it, and what follows is not told. */
  get endsEarly(): boolean {
    return this.#endsEarly;
  }

  /** Calls that have begun. */
  get count(): number {
    return this.#index + 1;
  }

  isGuided(call: ToolCall): boolean {
    return this.#guided.has(call);
  }

  take(): OutputEvent[] {
    this.#flush();
    const events = this.#events;
    this.#events = [];
    return events;
  }

  content(text: string): void {
    this.#append("content", text);
  }

  reasoning(text: string): void {
    this.#append("reasoning", text);
  }

  start(name: string, isGuided = false): void {
    if (this.#endsEarly) return;
    this.tellWaiting();
    this.#flush();
    this.#isGuided = isGuided;
    this.#index += 1;
    this.#id = this.#newCallId();
    this.#name = name;
    this.#arguments = [];
    this.#waits = this.#repeated?.begin(name) ?? false;
    if (!this.#waits) this.#tellStart();
  }

  arguments(delta: string): void {
    if (delta === "" || this.#endsEarly) return;
    this.#arguments.push(delta);
    if (!this.#waits) this.#append("arguments", delta);
    else if (!this.#repeated!.continue(delta)) this.tellWaiting();
  }

  end(): void {
    if (this.#endsEarly) return;
    const call = { id: this.#id, name: this.#name, arguments: this.#arguments.join("") };
    this.#endsEarly = this.#repeated?.end(call) ?? false;
    // One that is written in another way than those before it has been told.
    if (this.#endsEarly && this.#waits) return;
    this.tellWaiting();
    this.#flush();
    this.#calls.push(call);
    if (this.#isGuided) this.#guided.add(call);
    this.#events.push({ type: "call-end", index: this.#index, call });
  }

  /** Tells of the call that waits, as far as it is written. */
  tellWaiting(): void {
    if (!this.#waits || this.#endsEarly) return;
    this.#waits = false;
    this.#tellStart();
    const written = this.#arguments.join("");
    if (written !== "") this.#append("arguments", written);
  }

  #tellStart(): void {
    const told = { index: this.#index, id: this.#id, name: this.#name };
    this.#events.push({ type: "call-start", ...told });
  }

  #append(kind: "content" | "reasoning" | "arguments", text: string): void {
    if (this.#endsEarly) return;
    if (this.#kind !== kind) this.#flush();
    this.#kind = kind;
    this.#text.push(text);
  }

  #flush(): void {
    const text = this.#text.join("");
    if (this.#kind === "arguments")
      this.#events.push({ type: "call-arguments", index: this.#index, delta: text });
    else if (this.#kind !== "") this.#events.push({ type: this.#kind, text });
    this.#kind = "";
    this.#text = [];
  }
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LENGTH = 24;
/** The largest multiple of 62 in a byte: below it every letter is as likely. */
const FAIR = 248;

export function newCallId(): string {
  let letters = "";
  while (letters.length < LENGTH) {
    for (const byte of randomBytes(32)) {
      if (byte < FAIR && letters.length < LENGTH) letters += LETTERS.charAt(byte % LETTERS.length);
    }
  }
  return `call_${letters}`;
}

/** Two equal calls may be meant, as two throws of a die. A third hardly is. */
const maxEqual = 2;

type Call = Pick<ToolCall, "name" | "arguments">;

/** Notices a round that goes in circles: greedy small models write the same calls over and over. */
class RepeatedCalls {
  /** The round's calls by what they say. */
  readonly #made = new Map<string, Call[]>();
  /** Those that were made as often as they may be. */
  readonly #spent: Call[] = [];
  /** Of these: what the call that is being written may turn out to be. */
  #candidates: Call[] = [];
  /** Characters of its arguments so far. */
  #length = 0;

  /** A call begins. @returns whether it may become one too many */
  begin(name: string): boolean {
    this.#length = 0;
    this.#candidates = this.#spent.filter((call) => call.name === name);
    return this.#candidates.length > 0;
  }

  /** Its arguments go on. @returns whether it may still become one too many */
  continue(delta: string): boolean {
    const at = this.#length;
    this.#length += delta.length;
    this.#candidates = this.#candidates.filter((call) => call.arguments.startsWith(delta, at));
    return this.#candidates.length > 0;
  }

  /** The call has ended. @returns whether it is one too many; spaces and the order of keys do not count */
  end(call: Call): boolean {
    const key = JSON.stringify([call.name, canonicalArguments(call.arguments, parseExactJson)]);
    const equal = this.#made.get(key) ?? [];
    if (equal.length >= maxEqual) return true;
    equal.push(call);
    this.#made.set(key, equal);
    if (equal.length === maxEqual) this.#spent.push(...equal);
    return false;
  }
}
