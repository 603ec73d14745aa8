/** A conversation's run while it goes on, whoever looks. */

import { applyEvent, type ConversationState, emptyState } from "../../client/conversation-state.ts";
import type { ConversationEvent } from "../../client/types.ts";
import type { BranchedRun, BranchStore, NumberedEvent } from "../../store/types.ts";
import { LiveRun } from "../answer/live-run.ts";
import type { AnswerBody } from "./message-body.ts";

export class ConversationRun extends LiveRun<NumberedEvent> {
  readonly run: BranchedRun;
  readonly #store: BranchStore;
  #count = 0;
  #state: ConversationState = emptyState;

  constructor(owner: string, run: BranchedRun, store: BranchStore, abort: AbortController) {
    super({
      id: run.id,
      owner,
      abort,
      numberOf: (event) => event.number,
      keep: (event) => store.appendEvents(run.id, [event]),
    });
    this.run = run;
    this.#store = store;
  }

  /** As far as it is. */
  get state(): ConversationState {
    return this.#state;
  }

  async tell(event: ConversationEvent): Promise<void> {
    await this.publish(this.#number(event));
  }

  /** The last event. Whoever reads it finds the message as `bodyOf` makes it of the last state. */
  async end(
    event: ConversationEvent,
    bodyOf: (state: ConversationState) => AnswerBody,
  ): Promise<void> {
    const last = this.#number(event);
    const message = { id: this.run.messageId, body: bodyOf(this.#state) };
    try {
      await this.#store.endRun(this.run.id, message, [last]);
    } finally {
      this.finish(last);
    }
  }

  #number(event: ConversationEvent): NumberedEvent {
    this.#state = applyEvent(this.#state, event);
    this.#count += 1;
    return { number: this.#count, body: JSON.stringify(event) };
  }
}
