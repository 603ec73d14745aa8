/**
 * Remembers the tokens of generated turns, so that a conversation that returns gets its own tokens
 * back. A turn is found only by its owner, with equal content, equal calls and equal tools; whether
 * what stood before it is equal too is the caller's to check against `prompt`.
 */

import { createHash } from "node:crypto";
import { canonicalCalls } from "../template/normalize.ts";
import { type PromptDigest, digestOf } from "./prompt-digest.ts";
import type { GeneratedTurn } from "./suffix.ts";
import type { RenderScope, Rendering } from "../template/template.ts";
import type { ChatMessage } from "../types.ts";

export interface SpliceRecord {
  prompt: PromptDigest;
  /** Of `prompt`. */
  messageCount: number;
  turn: GeneratedTurn;
  /** Prompt and generated tokens, the end token included if there was one. */
  tokens: Int32Array;
}

/** An answer of several rounds. Its client saw one message and none of the calls. */
export interface AnswerRecord {
  /** The prompt of its first round. */
  prompt: PromptDigest;
  /** Of `prompt`. */
  messageCount: number;
  /** The text that the client saw: that of all rounds. */
  message: AssistantMessage;
  /** The messages for the template: the turns with their calls, and the results. */
  rounds: readonly ChatMessage[];
}

/** To be remembered: with its whole prompt. */
export type WithPrompt<Record> = Omit<Record, "prompt"> & { prompt: Rendering };

export interface SpliceScope extends RenderScope {
  owner: string;
}

type AssistantMessage = Extract<ChatMessage, { role: "assistant" }>;

type Remembered = SpliceRecord | AnswerRecord;

interface Entry {
  key: string;
  value: Remembered;
  bytes: number;
}

const standardBytes = 16 * 1024 * 1024;
/** Measured: what an entry takes beside its tokens and texts. */
const bytesBeside = 1024;

export class SpliceStore {
  readonly #maxBytes: number;
  #bytes = 0;
  /** The least recently used is first. */
  readonly #entries = new Set<Entry>();
  readonly #byKey = new Map<string, Entry[]>();
  /** A request asks for each of its messages, and its tools may be long. */
  readonly #scopeKeys = new WeakMap<SpliceScope, string>();
  readonly #digests = new WeakMap<AssistantMessage, string>();

  constructor(maxBytes = standardBytes) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get maxBytes(): number {
    return this.#maxBytes;
  }

  add(scope: SpliceScope, { prompt, messageCount, turn, tokens }: WithPrompt<SpliceRecord>): void {
    const value = { prompt: digestOf(prompt), messageCount, turn: copyOf(turn), tokens };
    // The message says again what was generated.
    const bytes = 4 * tokens.length + 2 * bytesOf(turn.raw);
    this.#put({ key: this.#keyOf(scope, turn.message), value, bytes });
  }

  addAnswer(scope: SpliceScope, answer: WithPrompt<AnswerRecord>): void {
    const { prompt, messageCount, message, rounds } = answer;
    const value = { prompt: digestOf(prompt), messageCount, ...copyOf({ message, rounds }) };
    const bytes = bytesOf(JSON.stringify(rounds));
    this.#put({ key: this.#keyOf(scope, message), value, bytes });
  }

  /** Turns equal to `message`, the newest first. */
  find(scope: SpliceScope, message: AssistantMessage): SpliceRecord[] {
    return this.#at(scope, message).filter(
      (value): value is SpliceRecord => "turn" in value && agrees(message, value.turn.message),
    );
  }

  /** Answers of several rounds with the text of `message`, the newest first. */
  findAnswers(scope: SpliceScope, message: AssistantMessage): AnswerRecord[] {
    return this.#at(scope, message).filter(
      (value): value is AnswerRecord => "rounds" in value && agrees(message, value.message),
    );
  }

  /** Marks it as recently used. */
  touch(value: Remembered): void {
    for (const entry of this.#entries) {
      if (entry.value !== value) continue;
      this.#entries.delete(entry);
      this.#entries.add(entry);
      return;
    }
  }

  #at(scope: SpliceScope, message: AssistantMessage): Remembered[] {
    const entries = this.#byKey.get(this.#keyOf(scope, message)) ?? [];
    return entries.map((entry) => entry.value).reverse();
  }

  #keyOf(scope: SpliceScope, message: AssistantMessage): string {
    let scopeKey = this.#scopeKeys.get(scope);
    if (scopeKey === undefined) {
      const parts = [scope.owner, scope.tools, scope.templateVariables ?? {}];
      scopeKey = createHash("sha256").update(JSON.stringify(parts)).digest("base64url");
      this.#scopeKeys.set(scope, scopeKey);
    }
    return `${scopeKey}${this.#digestOf(message)}`;
  }

  /** Of what the message says. A prompt asks for it several times. */
  #digestOf(message: AssistantMessage): string {
    let digest = this.#digests.get(message);
    if (digest === undefined) {
      const said = JSON.stringify([message.content, canonicalCalls(message.toolCalls)]);
      digest = createHash("sha256").update(said).digest("base64url");
      this.#digests.set(message, digest);
    }
    return digest;
  }

  #put({ key, value, bytes: size }: Entry): void {
    const bytes = size + bytesBeside;
    if (bytes > this.#maxBytes) return;
    const twin = this.#byKey
      .get(key)
      ?.find(
        ({ value: other }) =>
          "turn" in other === "turn" in value && other.prompt.digest === value.prompt.digest,
      );
    if (twin !== undefined) this.#remove(twin);
    const entry = { key, value, bytes };
    this.#entries.add(entry);
    this.#byKey.set(key, [...(this.#byKey.get(key) ?? []), entry]);
    this.#bytes += bytes;
    for (const oldest of this.#entries) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#remove(oldest);
    }
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry);
    this.#bytes -= entry.bytes;
    const rest = (this.#byKey.get(entry.key) ?? []).filter((other) => other !== entry);
    if (rest.length === 0) this.#byKey.delete(entry.key);
    else this.#byKey.set(entry.key, rest);
  }
}

/** V8 takes two bytes for each character once one is not Latin. */
function bytesOf(text: string): number {
  return /[^\0-\xff]/.test(text) ? 2 * text.length : text.length;
}

/** Text is joined from hundreds of pieces and cut from larger ones, which would be kept with it. */
function copyOf<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}

/** Clients rarely send reasoning back; one that does must send this one. */
function agrees(sent: AssistantMessage, said: AssistantMessage): boolean {
  const reasoning = sent.reasoning?.trim() ?? "";
  return reasoning === "" || reasoning === (said.reasoning?.trim() ?? "");
}
