import type { FermataError } from "../../errors.ts";
import type { SseMessage } from "../http/sse.ts";
import type { AnswerStream } from "../http/stream-answer.ts";
import type { WireEvent } from "./types.ts";

/** A streamed response: named events, then `[DONE]`, which the Open Responses specification wants. */
export class ResponseEventStream implements AnswerStream<WireEvent> {
  #next = 0;

  opening(): SseMessage[] {
    return [];
  }

  messages(event: WireEvent): SseMessage[] {
    this.#next = event.sequence_number + 1;
    return [{ event: event.type, data: JSON.stringify(event) }];
  }

  closing(): SseMessage[] {
    return [{ data: "[DONE]" }];
  }

  /** Only what fails outside of a response comes here: OpenAI's keys are flat, the specification's nested. */
  failure({ code, message, param, type }: FermataError): SseMessage[] {
    const error = { type, code, message, param };
    const event = { type: "error", sequence_number: this.#next, code, message, param, error };
    return [{ event: "error", data: JSON.stringify(event) }, ...this.closing()];
  }
}
