/** An Anthropic message as a stream of named events, or as one body. */

import type { FermataError } from "../../errors.ts";
import type { RunEvent } from "../../tools/types.ts";
import { AnswerCollector } from "../answer/collect-answer.ts";
import { type SseMessage, typedMessage } from "../http/sse.ts";
import type { AnswerStream } from "../http/stream-answer.ts";
import { anthropicErrorBody } from "../http/error-replies.ts";
import {
  emptyMessage,
  messageUsage,
  wireStop,
  type MessageIdentity,
  type WireMessage,
  type ContentBlock,
} from "./message.ts";
import { JsonScanner } from "../../chat/formats/readers/json-scanner.ts";
import { type JsonObject, isJsonObject, parseExactJson } from "../../json.ts";

/** `message_start`, the blocks, `message_delta` with the stop reason and the whole usage, `message_stop`. */
export class MessageStream implements AnswerStream<RunEvent> {
  readonly #identity: MessageIdentity;
  readonly #requestId: string;
  readonly #inputTokens: number;
  readonly #blocks = new MessageBlocks();

  /** @param inputTokens of the whole prompt: how much of it is cached is known at the end */
  constructor(identity: MessageIdentity, requestId: string, inputTokens: number) {
    this.#identity = identity;
    this.#requestId = requestId;
    this.#inputTokens = inputTokens;
  }

  opening(): SseMessage[] {
    const start = emptyMessage(this.#identity, this.#inputTokens);
    return [typedMessage({ type: "message_start", message: start })];
  }

  waiting(): SseMessage {
    return typedMessage({ type: "ping" });
  }

  messages(event: RunEvent): SseMessage[] {
    const told = this.#blocks.add(event).map(typedMessage);
    if (event.type !== "finish") return told;
    const { warnings, usage } = event;
    const delta = { ...wireStop(event), ...(warnings === undefined ? {} : { warnings }) };
    return [
      ...told,
      typedMessage({ type: "message_delta", delta, usage: messageUsage(usage) }),
      typedMessage({ type: "message_stop" }),
    ];
  }

  failure(error: FermataError): SseMessage[] {
    return [typedMessage(anthropicErrorBody(error, this.#requestId))];
  }
}

/** As one body: reads to the end. @throws the error that ended the generation */
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
    content: blocks.content,
    ...wireStop(finish),
    ...(finish.warnings === undefined ? {} : { warnings: finish.warnings }),
    usage: messageUsage(finish.usage),
  };
}

interface BlockEvent {
  type: string;
  index: number;
  [key: string]: unknown;
}

/** Clients send it back with the thinking, and some drop thinking that has none. It signs nothing. */
const thinkingSignature = "ZmVybWF0YQ==";

/** One after the other: what follows a block's kind opens the next block. */
class MessageBlocks {
  /** So far. */
  readonly content: ContentBlock[] = [];
  /** The last one, until it ends. */
  #open: ContentBlock | null = null;
  /** The call that is open. */
  #call = { index: 0, arguments: "", told: new InputJson() };

  /** @returns what a stream tells */
  add(event: RunEvent): BlockEvent[] {
    switch (event.type) {
      case "content":
        return event.text === "" ? [] : this.#text(event.text);
      case "reasoning":
        return event.text === "" ? [] : this.#thinking(event.text);
      case "call-start": {
        const { index, id, name } = event;
        const begun = this.#begin({ type: "tool_use", id, name, input: {} });
        this.#call = { index, arguments: "", told: new InputJson() };
        return begun;
      }
      case "call-arguments":
        return this.#write(event.index, event.delta);
      case "call-end": {
        // Arguments that came with the call's end only.
        const rest = this.#call.told.isEmpty ? this.#write(event.index, event.call.arguments) : [];
        this.#call.arguments = event.call.arguments;
        return [...rest, ...this.#end()];
      }
      case "finish":
        return this.#end();
      default:
        return [];
    }
  }

  #text(text: string): BlockEvent[] {
    const begun =
      this.#open?.type === "text" ? [] : this.#begin({ type: "text", text: "", citations: null });
    if (this.#open?.type === "text") this.#open.text += text;
    return [...begun, this.#delta({ type: "text_delta", text })];
  }

  #thinking(thinking: string): BlockEvent[] {
    const begun =
      this.#open?.type === "thinking"
        ? []
        : this.#begin({ type: "thinking", thinking: "", signature: "" });
    if (this.#open?.type === "thinking") this.#open.thinking += thinking;
    return [...begun, this.#delta({ type: "thinking_delta", thinking })];
  }

  #write(call: number, delta: string): BlockEvent[] {
    if (this.#open?.type !== "tool_use" || this.#call.index !== call) return [];
    this.#call.arguments += delta;
    const valid = this.#call.told.push(delta);
    return valid === "" ? [] : [this.#delta({ type: "input_json_delta", partial_json: valid })];
  }

  #begin(block: ContentBlock): BlockEvent[] {
    const end = this.#end();
    this.#open = block;
    this.content.push(block);
    return [...end, this.#event("content_block_start", { content_block: { ...block } })];
  }

  #end(): BlockEvent[] {
    const open = this.#open;
    if (open === null) return [];
    this.#open = null;
    const stop = this.#event("content_block_stop");
    if (open.type === "tool_use") open.input = inputOf(this.#call.arguments);
    if (open.type !== "thinking") return [stop];
    open.signature = thinkingSignature;
    return [this.#delta({ type: "signature_delta", signature: thinkingSignature }), stop];
  }

  #delta(delta: object): BlockEvent {
    return { type: "content_block_delta", index: this.content.length - 1, delta };
  }

  #event(type: string, rest: object = {}): BlockEvent {
    return { type, index: this.content.length - 1, ...rest };
  }
}

/** Input is an object on this wire: what a model wrote otherwise is kept as text in one. */
function inputOf(text: string): JsonObject {
  const value = parseExactJson(text.trim() === "" ? "{}" : text);
  return isJsonObject(value) ? value : { arguments: text };
}

/**
 * A call's arguments as they may be streamed: the longest beginning that is one JSON object. Clients
 * parse the pieces, and a character that breaks the JSON cannot be taken back.
 */
class InputJson {
  readonly #scanner = new JsonScanner();
  #state: "before" | "open" | "closed" = "before";

  get isEmpty(): boolean {
    return this.#state === "before";
  }

  /** @returns the part of `delta` that may be sent */
  push(delta: string): string {
    let valid = "";
    for (const character of delta) {
      if (this.#state === "closed") break;
      if (this.#state === "before" && character.trim() === "") continue;
      if (this.#state === "before" && character !== "{") this.#state = "closed";
      else valid += this.#scan(character);
    }
    return valid;
  }

  #scan(character: string): string {
    const result = this.#scanner.feed(character);
    this.#state = result === "more" ? "open" : "closed";
    return result === "more" || result === "end" ? character : "";
  }
}
