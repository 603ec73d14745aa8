import type { FermataError } from "../../errors.ts";
import type { ChoiceEvent } from "../answer/choices.ts";
import type { SseMessage } from "../http/sse.ts";
import type { AnswerStream } from "../http/stream-answer.ts";
import type { ChunkMapper } from "./chunks.ts";
import { errorBody } from "../http/error-body.ts";

/** A streamed chat completion: chunks, then `[DONE]`; a failure is one error object. */
export class ChunkStream implements AnswerStream<ChoiceEvent> {
  readonly #mapper: ChunkMapper;

  constructor(mapper: ChunkMapper) {
    this.#mapper = mapper;
  }

  opening(): SseMessage[] {
    return this.#mapper.opening().map(message);
  }

  messages(event: ChoiceEvent): SseMessage[] {
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
