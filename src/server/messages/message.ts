/** An answer as the body of an Anthropic message that is not streamed. */

import { isJsonObject, parseExactJson } from "../../json.ts";
import type { JsonObject } from "../body/field.ts";
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
import type { ChatEvent, ToolCall } from "../../chat/types.ts";
import type { EngineUsage } from "../../engine/types.ts";
import type { RunEvent } from "../../tools/types.ts";
import { AnswerCollector } from "../answer/collect-answer.ts";

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

type WireMessage = ValueOf<typeof message>;
type ContentBlock = ValueOf<typeof block>;

/** Clients send it back with the thinking, and some drop thinking that has none. It signs nothing. */
export const thinkingSignature = "ZmVybWF0YQ==";

/** Reads to the end. @throws the error that ended the generation */
export async function collectMessage(
  identity: MessageIdentity,
  events: AsyncIterable<RunEvent>,
): Promise<WireMessage> {
  const blocks = new MessageBlocks();
  const collector = new AnswerCollector();
  for await (const event of events) {
    blocks.add(event);
    collector.add(event);
  }
  const { finish } = collector.answer();
  return {
    ...emptyMessage(identity, 0),
    content: blocks.all(),
    ...wireStop(finish),
    ...(finish.warnings === undefined ? {} : { warnings: finish.warnings }),
    usage: messageUsage(finish.usage),
  };
}

/** The blocks of an answer in the order in which a stream has them. */
class MessageBlocks {
  readonly #blocks: ContentBlock[] = [];
  /** The arguments so far of the call that is last, until it ends. */
  #openInput: string | null = null;

  add(event: RunEvent): void {
    switch (event.type) {
      case "content":
        if (event.text !== "") this.#textBlock().text += event.text;
        return;
      case "reasoning":
        if (event.text !== "") this.#thinkingBlock().thinking += event.text;
        return;
      case "call-start":
        this.#blocks.push({ type: "tool_use", id: event.id, name: event.name, input: {} });
        this.#openInput = "";
        return;
      case "call-arguments":
        if (this.#openInput !== null) this.#openInput += event.delta;
        return;
      case "call-end":
        this.#endCall(event.call.arguments);
        return;
      default:
    }
  }

  /** With the call that the model was writing when the answer was cut, if it was. */
  all(): ContentBlock[] {
    if (this.#openInput !== null) this.#endCall(this.#openInput);
    return this.#blocks;
  }

  #endCall(text: string): void {
    const block = this.#blocks.at(-1);
    if (block?.type === "tool_use") block.input = inputOf(text);
    this.#openInput = null;
  }

  #textBlock(): ValueOf<typeof textBlock> {
    const last = this.#blocks.at(-1);
    if (last?.type === "text") return last;
    const block: ValueOf<typeof textBlock> = { type: "text", text: "", citations: null };
    this.#blocks.push(block);
    return block;
  }

  #thinkingBlock(): ValueOf<typeof thinkingBlock> {
    const last = this.#blocks.at(-1);
    if (last?.type === "thinking") return last;
    const signature = thinkingSignature;
    const block: ValueOf<typeof thinkingBlock> = { type: "thinking", thinking: "", signature };
    this.#blocks.push(block);
    return block;
  }
}

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
 * Over all rounds. Tokens found in the KV cache are not part of `input_tokens`; keeping a prefix costs
 * nothing, so none are counted as written.
 */
export function messageUsage(usage: EngineUsage): WireMessage["usage"] {
  return {
    input_tokens: usage.promptTokens + usage.resumedTokens - usage.cachedTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: usage.cachedTokens,
    output_tokens: usage.generatedTokens,
  };
}

/** Input is an object on this wire: what a model wrote otherwise is kept as text in one. */
function inputOf(text: ToolCall["arguments"]): JsonObject {
  const value = parseExactJson(text.trim() === "" ? "{}" : text);
  return isJsonObject(value) ? value : { arguments: text };
}
