/** An answer as the body of an Anthropic message that is not streamed. */

import { isJsonObject, parseJson } from "../../json.ts";
import type { ChatEvent, ToolCall } from "../../chat/types.ts";
import type { EngineUsage } from "../../engine/types.ts";
import type { Answer } from "../answer/collect-answer.ts";

export interface MessageIdentity {
  id: string;
  model: string;
}

export interface MessageUsage {
  input_tokens: number;
  cache_creation_input_tokens: number;
  cache_read_input_tokens: number;
  output_tokens: number;
}

type StopReason = "end_turn" | "max_tokens" | "stop_sequence" | "tool_use" | "refusal";

export interface WireStop {
  stop_reason: StopReason | null;
  stop_sequence: string | null;
}

type ContentBlock =
  | { type: "thinking"; thinking: string; signature: string }
  | { type: "text"; text: string; citations: null }
  | { type: "tool_use"; id: string; name: string; input: object };

export interface WireMessage extends MessageIdentity, WireStop {
  type: "message";
  role: "assistant";
  content: ContentBlock[];
  /** Not of Anthropic's format: what the answer lacks, and why. */
  warnings?: string[];
  usage: MessageUsage;
}

/** Clients send it back with the thinking, and some drop thinking that has none. It signs nothing. */
export const thinkingSignature = "ZmVybWF0YQ==";

export function wireMessage(identity: MessageIdentity, answer: Answer): WireMessage {
  const { content, reasoning, calls, cutCalls, finish } = answer;
  const blocks: ContentBlock[] = [];
  if (reasoning !== "")
    blocks.push({ type: "thinking", thinking: reasoning, signature: thinkingSignature });
  if (content !== "") blocks.push({ type: "text", text: content, citations: null });
  for (const { id, name, arguments: text } of [...calls, ...cutCalls])
    blocks.push({ type: "tool_use", id, name, input: inputOf(text) });
  return {
    ...emptyMessage(identity, 0),
    content: blocks,
    ...wireStop(finish),
    ...(finish.warnings === undefined ? {} : { warnings: finish.warnings }),
    usage: messageUsage(finish.usage),
  };
}

/** A message before its first token. */
export function emptyMessage({ id, model }: MessageIdentity, inputTokens: number): WireMessage {
  return {
    id,
    type: "message",
    role: "assistant",
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: {
      input_tokens: inputTokens,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      output_tokens: 0,
    },
  };
}

/** A cancelled generation never gets so far: its client is gone or gets an error. */
export function wireStop({ reason, stopString }: Extract<ChatEvent, { type: "finish" }>): WireStop {
  if (reason === "tool_calls") return { stop_reason: "tool_use", stop_sequence: null };
  if (reason === "length") return { stop_reason: "max_tokens", stop_sequence: null };
  if (reason === "content_filter") return { stop_reason: "refusal", stop_sequence: null };
  return stopString === undefined
    ? { stop_reason: "end_turn", stop_sequence: null }
    : { stop_reason: "stop_sequence", stop_sequence: stopString };
}

/**
 * Over all rounds. Tokens found in the KV cache are not part of `input_tokens`; keeping a prefix costs
 * nothing, so none are counted as written.
 */
export function messageUsage(usage: EngineUsage): MessageUsage {
  return {
    input_tokens: usage.promptTokens + usage.resumedTokens - usage.cachedTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cachedTokens,
    output_tokens: usage.generatedTokens,
  };
}

/** Input is an object on this wire: what a model wrote otherwise is kept as text in one. */
function inputOf(text: ToolCall["arguments"]): object {
  const value = parseJson(text === "" ? "{}" : text);
  return isJsonObject(value) ? value : { arguments: text };
}
