/** A run's events as server-sent events: unnamed, numbered, without an end mark. */

import type { ConversationEvent } from "../../client/types.ts";
import type { NumberedEvent } from "../../store/types.ts";
import type { SseMessage } from "../http/sse.ts";
import type { AnswerStream } from "../http/stream-answer.ts";

export class ConversationStream implements AnswerStream<NumberedEvent> {
  readonly isResumable = true;
  readonly #withDetails: boolean;

  constructor(withDetails: boolean) {
    this.#withDetails = withDetails;
  }

  opening(): SseMessage[] {
    return [];
  }

  messages({ number, body }: NumberedEvent): SseMessage[] {
    const data = this.#withDetails ? body : plainEvent(body);
    return data === null ? [] : [{ id: String(number), data }];
  }

  closing(): SseMessage[] {
    return [];
  }

  /** The message has the error; a viewer that asked for details has it from the last event. */
  failure(): SseMessage[] {
    return [];
  }
}

/** Without details. Null: they were all there was. */
export function plainEvent(body: string): string | null {
  const { details: _details, ...plain } = JSON.parse(body) as ConversationEvent;
  const { message, citations, tool_calls: calls } = plain;
  return message === "" && citations.length === 0 && calls.length === 0
    ? null
    : JSON.stringify(plain);
}
