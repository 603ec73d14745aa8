/** One answer of another server, from its chunks: what it says, what it calls, how it says it ended. */

import { type JsonObject, isJsonObject, parseJson } from "../../json.ts";
import { newCallId } from "../../chat/parser/text-parser.ts";
import type { ChatEvent, ChatUsage, ToolCall } from "../../chat/types.ts";
import type { RemoteMessage } from "./wire-request.ts";
import { noUsage } from "../../engine/generation.ts";

interface GrowingCall {
  /** Fermata's: those of other servers need not be unique. */
  call: ToolCall;
  /** What the server tells its parts by. */
  index: number | null;
  id: string | null;
}

/** Where servers put what a model thinks. */
const reasoningFields = ["reasoning_content", "reasoning"] as const;

export class RemoteTurn {
  #content = "";
  /** By its field. */
  readonly #reasoning: Record<string, string> = {};
  finishReason: string | null = null;
  readonly #calls: GrowingCall[] = [];
  #usage: ChatUsage | null = null;
  /** Deltas with text: what is counted where the server counts nothing. */
  #deltas = 0;

  get calls(): ToolCall[] {
    return this.#calls.map(({ call }) => call);
  }

  /** As its server wants to read it in the next round. */
  get message(): RemoteMessage {
    return {
      role: "assistant",
      content: this.#content,
      toolCalls: this.calls,
      reasoningFields: this.#reasoning,
    };
  }

  get usage(): ChatUsage {
    return this.#usage ?? { ...noUsage, generatedTokens: this.#deltas };
  }

  /** A chunk of a stream, or a whole completion. */
  *add(chunk: JsonObject): Generator<ChatEvent, void, void> {
    this.#count(chunk["usage"]);
    const choices = chunk["choices"];
    const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
    if (!isJsonObject(choice)) return;
    const reason = choice["finish_reason"];
    if (typeof reason === "string" && reason !== "") this.finishReason = reason;
    const said = choice["delta"] ?? choice["message"];
    if (isJsonObject(said)) yield* this.#said(said);
  }

  /** To be called once, when nothing follows. */
  *end(): Generator<ChatEvent, void, void> {
    for (const [index, { call }] of this.#calls.entries()) yield { type: "call-end", index, call };
  }

  *#said(said: JsonObject): Generator<ChatEvent, void, void> {
    for (const field of reasoningFields) {
      const reasoning = said[field];
      if (typeof reasoning !== "string" || reasoning === "") continue;
      this.#deltas += 1;
      this.#reasoning[field] = (this.#reasoning[field] ?? "") + reasoning;
      yield { type: "reasoning", text: reasoning };
      // Some servers say it in both.
      break;
    }
    const content = textOf(said["content"]);
    if (content !== "") {
      this.#deltas += 1;
      this.#content += content;
      yield { type: "content", text: content };
    }
    for (const part of callParts(said)) yield* this.#addCall(part);
  }

  *#addCall(part: JsonObject): Generator<ChatEvent, void, void> {
    const named = isJsonObject(part["function"]) ? part["function"] : part;
    const name = typeof named["name"] === "string" ? named["name"] : "";
    const delta = argumentsOf(named["arguments"]);
    const index = typeof part["index"] === "number" ? part["index"] : null;
    const id = typeof part["id"] === "string" && part["id"] !== "" ? part["id"] : null;
    let at = this.#find(index, id, name);
    if (at < 0) {
      if (name === "") return;
      at = this.#calls.push({ call: { id: newCallId(), name, arguments: "" }, index, id }) - 1;
      yield { type: "call-start", index: at, id: this.#calls[at]!.call.id, name };
    }
    const { call } = this.#calls[at]!;
    // Some servers say the whole arguments once more at the end.
    if (delta === "" || isWhole(call.arguments)) return;
    this.#deltas += 1;
    call.arguments += delta;
    yield { type: "call-arguments", index: at, delta };
  }

  /** By index, by id, or the last one; -1: a new call begins. */
  #find(index: number | null, id: string | null, name: string): number {
    if (index !== null) {
      const at = this.#calls.findLastIndex((known) => known.index === index);
      const isOther = id !== null && at >= 0 && (this.#calls[at]!.id ?? id) !== id;
      return isOther ? -1 : at;
    }
    if (id !== null) return this.#calls.findIndex((known) => known.id === id);
    return name === "" ? this.#calls.length - 1 : -1;
  }

  #count(usage: unknown): void {
    if (!isJsonObject(usage)) return;
    const promptTokens = count(usage["prompt_tokens"]);
    const cachedTokens = detail(usage["prompt_tokens_details"], "cached_tokens");
    this.#usage = {
      ...noUsage,
      promptTokens,
      cachedTokens,
      prefilledTokens: Math.max(0, promptTokens - cachedTokens),
      generatedTokens: count(usage["completion_tokens"]),
      reasoningTokens: detail(usage["completion_tokens_details"], "reasoning_tokens"),
    };
  }
}

/** `tool_calls`, and what some servers and older ones have in its place. */
function callParts(said: JsonObject): JsonObject[] {
  const { tool_calls: many, tool_call: one, function_call: legacy } = said;
  if (Array.isArray(many) && many.length > 0) return many.filter(isJsonObject);
  if (isJsonObject(many)) return [many];
  if (Array.isArray(one)) return one.filter(isJsonObject);
  return [one, legacy].filter(isJsonObject).slice(0, 1);
}

/** Text, or parts of text. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .filter(isJsonObject)
    .map(({ text }) => (typeof text === "string" ? text : ""))
    .join("");
}

/** JSON text; some servers send the object itself. */
function argumentsOf(value: unknown): string {
  if (typeof value === "string") return value;
  return isJsonObject(value) ? JSON.stringify(value) : "";
}

function isWhole(text: string): boolean {
  return text.trimEnd().endsWith("}") && parseJson(text) !== undefined;
}

function detail(value: unknown, key: string): number {
  return isJsonObject(value) ? count(value[key]) : 0;
}

function count(value: unknown): number {
  return typeof value === "number" && value > 0 ? Math.floor(value) : 0;
}
