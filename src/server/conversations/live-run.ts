/** A run while it goes on, whoever looks. */

import { applyEvent, type ConversationState, emptyState } from "../../client/conversation-state.ts";
import type { ConversationEvent } from "../../client/types.ts";
import type { FermataError } from "../../errors.ts";
import type { BranchedRun, BranchStore, NumberedEvent } from "../../store/types.ts";
import { LiveLog } from "../answer/live-log.ts";
import type { AnswerBody } from "./message-body.ts";

export class LiveRun {
  readonly run: BranchedRun;
  readonly ended: Promise<void>;
  readonly #store: BranchStore;
  readonly #abort: AbortController;
  readonly #log = new LiveLog<NumberedEvent>((event) => event.number);
  #state: ConversationState = emptyState;
  #end: () => void = () => {};

  constructor(run: BranchedRun, store: BranchStore, abort: AbortController) {
    this.run = run;
    this.#store = store;
    this.#abort = abort;
    this.ended = new Promise((resolve) => (this.#end = resolve));
  }

  /** As far as it is. */
  get state(): ConversationState {
    return this.#state;
  }

  cancel(reason: FermataError): void {
    this.#abort.abort(reason);
  }

  /** It is kept before anybody sees it. */
  async publish(event: ConversationEvent): Promise<void> {
    const numbered = this.#number(event);
    await this.#store.appendEvents(this.run.id, [numbered]);
    this.#log.append(numbered);
  }

  /** The last event. Whoever reads it finds the message as `bodyOf` makes it of the last state. */
  async finish(
    event: ConversationEvent,
    bodyOf: (state: ConversationState) => AnswerBody,
  ): Promise<void> {
    const numbered = this.#number(event);
    const message = { id: this.run.messageId, body: bodyOf(this.#state) };
    try {
      await this.#store.endRun(this.run.id, message, [numbered]);
    } finally {
      this.#log.append(numbered);
      this.#log.end();
      this.#end();
    }
  }

  /** Events above `after` to the last one, or until the viewer has gone. */
  read(after: number, viewer: AbortSignal): AsyncGenerator<NumberedEvent, void, void> {
    return this.#log.read(after, viewer);
  }

  #number(event: ConversationEvent): NumberedEvent {
    this.#state = applyEvent(this.#state, event);
    return { number: this.#log.events.length + 1, body: JSON.stringify(event) };
  }
}
