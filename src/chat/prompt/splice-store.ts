/**
 * Remembers the tokens of generated turns, so that a conversation that returns gets its own tokens
 * back. A turn is found only by its owner, with equal content, equal calls and equal tools; whether
 * what stood before it is equal too is the caller's to check against `prompt`.
 */

import { createHash } from "node:crypto";
import { canonicalCalls } from "../template/normalize.ts";
import type { GeneratedTurn } from "./suffix.ts";
import type { Rendering } from "../template/template.ts";
import type { ChatMessage, TemplateVariables, ToolDefinition } from "../types.ts";

export interface SpliceRecord {
  prompt: Rendering;
  /** Of `prompt`. */
  messageCount: number;
  turn: GeneratedTurn;
  /** Prompt and generated tokens, the end token included if there was one. */
  tokens: Int32Array;
}

/** An answer of several rounds. Its client saw one message and none of the calls. */
export interface AnswerRecord {
  /** The prompt of its first round. */
  prompt: Rendering;
  /** Of `prompt`. */
  messageCount: number;
  /** The text that the client saw: that of all rounds. */
  message: AssistantMessage;
  /** The messages for the template: the turns with their calls, and the results. */
  rounds: readonly ChatMessage[];
}

export interface SpliceScope {
  owner: string;
  tools: readonly ToolDefinition[];
  templateVariables?: TemplateVariables | undefined;
}

type AssistantMessage = Extract<ChatMessage, { role: "assistant" }>;

type Remembered = SpliceRecord | AnswerRecord;

interface Entry {
  key: string;
  value: Remembered;
  bytes: number;
}

export class SpliceStore {
  readonly #maxBytes: number;
  #bytes = 0;
  /** The least recently used is first. */
  readonly #entries = new Set<Entry>();
  readonly #byKey = new Map<string, Entry[]>();
  /** A request asks for each of its messages, and its tools may be long. */
  readonly #scopeKeys = new WeakMap<SpliceScope, string>();
  readonly #digests = new WeakMap<AssistantMessage, string>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(scope: SpliceScope, record: SpliceRecord): void {
    const { tokens, prompt, turn } = record;
    const bytes = 4 * tokens.length + 2 * (prompt.text.length + 2 * turn.raw.length);
    this.#put({ key: this.#keyOf(scope, turn.message), value: record, bytes });
  }

  addAnswer(scope: SpliceScope, answer: AnswerRecord): void {
    const bytes = 2 * (answer.prompt.text.length + JSON.stringify(answer.rounds).length);
    this.#put({ key: this.#keyOf(scope, answer.message), value: answer, bytes });
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
    const bytes = size + 512;
    if (bytes > this.#maxBytes) return;
    const twin = this.#byKey
      .get(key)
      ?.find(
        ({ value: other }) =>
          "turn" in other === "turn" in value && other.prompt.text === value.prompt.text,
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

/** Clients rarely send reasoning back; one that does must send this one. */
function agrees(sent: AssistantMessage, said: AssistantMessage): boolean {
  const reasoning = sent.reasoning?.trim() ?? "";
  return reasoning === "" || reasoning === (said.reasoning?.trim() ?? "");
}
