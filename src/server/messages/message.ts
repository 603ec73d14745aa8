/** An Anthropic message, and what of it does not depend on its blocks. */

import {
  answer,
  choice,
  list,
  nothing,
  nullable,
  object,
  oneOf,
  string,
  type ValueOf,
  whole,
} from "../body/shapes.ts";
import type { ChatEvent } from "../../chat/types.ts";
import type { EngineUsage } from "../../engine/types.ts";

export interface MessageIdentity {
  id: string;
  model: string;
}

const thinkingBlock = answer({ type: choice("thinking"), thinking: string, signature: string });
const textBlock = answer({ type: choice("text"), text: string, citations: nothing });
const toolUseBlock = answer({ type: choice("tool_use"), id: string, name: string, input: object });
const block = oneOf(thinkingBlock, textBlock, toolUseBlock);

export const message = answer(
  {
    id: string,
    type: choice("message"),
    role: choice("assistant"),
    model: string,
    content: list(block),
    stop_reason: choice("end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"),
    stop_sequence: nullable(string),
    usage: answer({
      input_tokens: whole,
      cache_creation_input_tokens: whole,
      cache_read_input_tokens: whole,
      output_tokens: whole,
    }),
  },
  // Not of Anthropic's format: what the answer lacks, and why.
  { warnings: list(string) },
);

export type WireMessage = ValueOf<typeof message>;
export type ContentBlock = ValueOf<typeof block>;

/** A message before its first token. */
export function emptyMessage(
  { id, model }: MessageIdentity,
  inputTokens: number,
): Omit<WireMessage, "stop_reason"> & { stop_reason: null } {
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
export function wireStop({
  reason,
  stopString,
}: Extract<ChatEvent, { type: "finish" }>): Pick<WireMessage, "stop_reason" | "stop_sequence"> {
  if (reason === "tool_calls") return { stop_reason: "tool_use", stop_sequence: null };
  if (reason === "length") return { stop_reason: "max_tokens", stop_sequence: null };
  if (reason === "content_filter") return { stop_reason: "refusal", stop_sequence: null };
  return stopString === undefined
    ? { stop_reason: "end_turn", stop_sequence: null }
    : { stop_reason: "stop_sequence", stop_sequence: stopString };
}

/**
 * Over all rounds. The three counts of input add up to the prompt, as at Anthropic: what was found in the KV cache, what
 * was written to it, and the last token, which is computed for every answer. Claude Code takes an `input_tokens` of 0 for
 * a missing one, and keeps that of `message_start`.
 */
export function messageUsage(usage: EngineUsage): WireMessage["usage"] {
  const computed = Math.max(0, usage.promptTokens + usage.resumedTokens - usage.cachedTokens);
  const last = Math.min(1, computed);
  return {
    input_tokens: last,
    cache_creation_input_tokens: computed - last,
    cache_read_input_tokens: usage.cachedTokens,
    output_tokens: usage.generatedTokens,
  };
}
