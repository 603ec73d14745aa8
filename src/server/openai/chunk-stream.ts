import type { ChatEvent } from "../../chat/types.ts";
import type { FermataError } from "../../errors.ts";
import type { SseMessage } from "../plugins/sse.ts";
import type { AnswerStream } from "../stream-answer.ts";
import type { ChunkMapper } from "./chunks.ts";
import { errorBody } from "./error-body.ts";

/** A streamed chat completion: chunks, then `[DONE]`; a failure is one error object. */
export class ChunkStream implements AnswerStream<ChatEvent> {
  readonly #mapper: ChunkMapper;

  constructor(mapper: ChunkMapper) {
    this.#mapper = mapper;
  }

  opening(): SseMessage[] {
    return [message(this.#mapper.opening())];
  }

  messages(event: ChatEvent): SseMessage[] {
    return this.#mapper.chunks(event).map(message);
  }

  closing(): SseMessage[] {
    return [{ data: "[DONE]" }];
  }

  failure(error: FermataError): SseMessage[] {
    return [message(errorBody(error))];
  }
}

function message(value: object): SseMessage {
  return { data: JSON.stringify(value) };
}
