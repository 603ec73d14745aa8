/** A whole answer, from its events. */

import type { ChatEvent, ContentToken, ToolCall } from "../../chat/types.ts";
import { FermataError } from "../../errors.ts";
import type { RunEvent } from "../../tools/types.ts";

/** What was said, from the events that a client of this mode may see. */
export interface Answer {
  content: string;
  reasoning: string;
  /** Log-probabilities of the content's tokens; empty if none were asked for. */
  logprobs: readonly ContentToken[];
  calls: readonly ToolCall[];
  /** At most one call, which the model was writing when the answer was cut. */
  cutCalls: readonly ToolCall[];
  finish: Extract<ChatEvent, { type: "finish" }>;
}

/** Collects an answer from its events. */
export class AnswerCollector {
  #content = "";
  #reasoning = "";
  readonly #logprobs: ContentToken[] = [];
  #openCall: ToolCall | null = null;
  #finish: Answer["finish"] | null = null;

  add(event: RunEvent): void {
    if (event.type === "content") {
      this.#content += event.text;
      this.#logprobs.push(...(event.logprobs ?? []));
    } else if (event.type === "reasoning") this.#reasoning += event.text;
    else if (event.type === "call-start")
      this.#openCall = { id: event.id, name: event.name, arguments: "" };
    else if (event.type === "call-arguments" && this.#openCall !== null)
      this.#openCall.arguments += event.delta;
    else if (event.type === "call-end") this.#openCall = null;
    else if (event.type === "finish") this.#finish = event;
  }

  /** @throws FermataError internal_error: there was no `finish` */
  answer(): Answer {
    const finish = this.#finish;
    if (finish === null)
      throw new FermataError("internal_error", "The events ended without finish.");
    return {
      content: this.#content,
      reasoning: this.#reasoning,
      logprobs: this.#logprobs,
      calls: finish.calls,
      cutCalls: this.#openCall === null ? [] : [this.#openCall],
      finish,
    };
  }
}

/** Reads to the end. @throws the error that ended the generation */
export async function collectAnswer(events: AsyncIterable<RunEvent>): Promise<Answer> {
  const collector = new AnswerCollector();
  for await (const event of events) collector.add(event);
  return collector.answer();
}
