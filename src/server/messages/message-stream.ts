/** Chat events to the named events of a streamed Anthropic message. */

import type { FermataError } from "../../errors.ts";
import type { RunEvent } from "../../tools/types.ts";
import { type SseMessage, typedMessage } from "../http/sse.ts";
import type { AnswerStream } from "../http/stream-answer.ts";
import { anthropicErrorBody } from "../http/error-replies.ts";
import {
  emptyMessage,
  messageUsage,
  thinkingSignature,
  wireStop,
  type MessageIdentity,
} from "./message.ts";
import { JsonScanner } from "../../chat/formats/readers/json-scanner.ts";

type OpenBlock =
  | { type: "text" }
  | { type: "thinking" }
  | { type: "tool_use"; call: number; input: InputJson };

/**
 * `message_start`, blocks one after the other, `message_delta` with the stop reason and the whole
 * usage, `message_stop`. What follows a block's kind opens the next block.
 */
export class MessageStream implements AnswerStream<RunEvent> {
  readonly #identity: MessageIdentity;
  readonly #requestId: string;
  readonly #inputTokens: number;
  #index = -1;
  #open: OpenBlock | null = null;

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
    switch (event.type) {
      case "content":
        return event.text === "" ? [] : this.#text(event.text);
      case "reasoning":
        return event.text === "" ? [] : this.#thinking(event.text);
      case "call-start": {
        const { index, id, name } = event;
        return this.#begin(
          { type: "tool_use", call: index, input: new InputJson() },
          { type: "tool_use", id, name, input: {} },
        );
      }
      case "call-arguments":
        return this.#input(event.index, event.delta);
      case "call-end":
        return [...this.#rest(event.index, event.call.arguments), ...this.#end()];
      case "finish":
        return [
          ...this.#end(),
          typedMessage({
            type: "message_delta",
            delta: {
              ...wireStop(event),
              ...(event.warnings === undefined ? {} : { warnings: event.warnings }),
            },
            usage: messageUsage(event.usage),
          }),
          typedMessage({ type: "message_stop" }),
        ];
      default:
        return [];
    }
  }

  failure(error: FermataError): SseMessage[] {
    return [typedMessage(anthropicErrorBody(error, this.#requestId))];
  }

  #text(text: string): SseMessage[] {
    const begin =
      this.#open?.type === "text"
        ? []
        : this.#begin({ type: "text" }, { type: "text", text: "", citations: null });
    return [...begin, this.#delta({ type: "text_delta", text })];
  }

  #thinking(thinking: string): SseMessage[] {
    const begin =
      this.#open?.type === "thinking"
        ? []
        : this.#begin({ type: "thinking" }, { type: "thinking", thinking: "", signature: "" });
    return [...begin, this.#delta({ type: "thinking_delta", thinking })];
  }

  #input(call: number, delta: string): SseMessage[] {
    const block = this.#open;
    if (block?.type !== "tool_use" || block.call !== call) return [];
    const valid = block.input.push(delta);
    return valid === "" ? [] : [this.#delta({ type: "input_json_delta", partial_json: valid })];
  }

  /** Arguments that came with the call's end only. */
  #rest(call: number, text: string): SseMessage[] {
    const wasStreamed = this.#open?.type === "tool_use" && !this.#open.input.isEmpty;
    return wasStreamed ? [] : this.#input(call, text);
  }

  #begin(block: OpenBlock, content: object): SseMessage[] {
    const end = this.#end();
    this.#open = block;
    this.#index += 1;
    const start = { type: "content_block_start", index: this.#index, content_block: content };
    return [...end, typedMessage(start)];
  }

  #end(): SseMessage[] {
    if (this.#open === null) return [];
    const signature =
      this.#open.type === "thinking"
        ? [this.#delta({ type: "signature_delta", signature: thinkingSignature })]
        : [];
    this.#open = null;
    return [...signature, typedMessage({ type: "content_block_stop", index: this.#index })];
  }

  #delta(delta: object): SseMessage {
    return typedMessage({ type: "content_block_delta", index: this.#index, delta });
  }
}

/**
 * A call's arguments as they may be streamed: the longest beginning that is one JSON object. Clients
 * parse the pieces, and a character that breaks the JSON cannot be taken back.
 */
export class InputJson {
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
