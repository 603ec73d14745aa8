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
} from "./message.ts";
import { MessageBlocks } from "./message-blocks.ts";

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
