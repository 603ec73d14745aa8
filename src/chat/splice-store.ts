/**
 * Remembers the tokens of generated turns, so that a conversation that returns gets its own tokens
 * back. A turn is found only by its owner, with equal content, equal calls and equal tools; whether
 * what stood before it is equal too is the caller's to check against `prompt`.
 */

import { canonicalCalls } from "./normalize.ts";
import type { GeneratedTurn } from "./suffix.ts";
import type { Rendering } from "./template.ts";
import type { ChatMessage, TemplateVariables, ToolDefinition } from "./types.ts";

export interface SpliceRecord {
  prompt: Rendering;
  turn: GeneratedTurn;
  /** Prompt and generated tokens, the end token included if there was one. */
  tokens: Int32Array;
}

export interface SpliceScope {
  owner: string;
  tools: readonly ToolDefinition[];
  templateVariables?: TemplateVariables | undefined;
}

type AssistantMessage = Extract<ChatMessage, { role: "assistant" }>;

interface Entry {
  key: string;
  record: SpliceRecord;
  bytes: number;
}

export class SpliceStore {
  readonly #maxBytes: number;
  #bytes = 0;
  /** The least recently used is first. */
  readonly #entries = new Set<Entry>();
  readonly #byKey = new Map<string, Entry[]>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(scope: SpliceScope, record: SpliceRecord): void {
    const bytes =
      4 * record.tokens.length + 2 * (record.prompt.text.length + 2 * record.turn.raw.length) + 512;
    if (bytes > this.#maxBytes) return;
    const key = keyOf(scope, record.turn.message);
    const twin = this.#byKey
      .get(key)
      ?.find((entry) => entry.record.prompt.text === record.prompt.text);
    if (twin !== undefined) this.#remove(twin);
    const entry = { key, record, bytes };
    this.#entries.add(entry);
    this.#byKey.set(key, [...(this.#byKey.get(key) ?? []), entry]);
    this.#bytes += bytes;
    for (const oldest of this.#entries) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#remove(oldest);
    }
  }

  /** Turns that say what `message` says, the newest first. */
  find(scope: SpliceScope, message: AssistantMessage): SpliceRecord[] {
    const entries = this.#byKey.get(keyOf(scope, message)) ?? [];
    const reasoning = message.reasoning?.trim() ?? "";
    return entries
      .map((entry) => entry.record)
      .filter(
        (record) => reasoning === "" || reasoning === (record.turn.message.reasoning?.trim() ?? ""),
      )
      .reverse();
  }

  /** Keeps `record` longer. */
  touch(record: SpliceRecord): void {
    for (const entry of this.#entries) {
      if (entry.record !== record) continue;
      this.#entries.delete(entry);
      this.#entries.add(entry);
      return;
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

function keyOf(scope: SpliceScope, message: AssistantMessage): string {
  return JSON.stringify([
    scope.owner,
    scope.tools,
    scope.templateVariables ?? {},
    message.content,
    canonicalCalls(message.toolCalls),
  ]);
}
