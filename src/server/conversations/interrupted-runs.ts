/** Runs that an earlier process left: what can go on goes on, and the rest ends. */

import { applyEvent, type ConversationState, emptyState } from "../../client/conversation-state.ts";
import type { FermataError } from "../../errors.ts";
import type { BranchStore, InterruptedRun, NumberedEvent } from "../../store/types.ts";
import { goOnWith } from "../answer/left-runs.ts";
import { interruptedEnd } from "./calls.ts";
import { modelOf, stateOf } from "./held-round.ts";
import { answerBody } from "./message-body.ts";
import { endOfFailure, type Runner, type RunnerContext } from "./runner.ts";

export class InterruptedRuns {
  readonly #store: BranchStore;
  readonly #runner: Runner;
  /** Of runs that this process takes over. Null: it takes none yet. */
  #context: RunnerContext | null = null;

  constructor(store: BranchStore, runner: Runner) {
    this.#store = store;
    this.#runner = runner;
  }

  async adopt(context: RunnerContext): Promise<void> {
    this.#context = context;
    await this.take();
  }

  async take(): Promise<void> {
    const context = this.#context;
    if (context === null) return;
    await goOnWith(await this.#store.takeInterrupted(), {
      expected: this.#runner.live.expected,
      context,
      modelOf: (run) => modelOf(run),
      begin: (run, own, abort) =>
        this.#runner.goOn(run, { ...own, startedAt: performance.now() }, abort),
      fail: (run, failure) => this.#fail(run, failure),
    });
  }

  /** With its output so far. */
  async #fail({ id, messageId, events }: InterruptedRun, failure: FermataError): Promise<void> {
    const state = readableState(events);
    const last = interruptedEnd(state, endOfFailure(failure));
    const number = (events.at(-1)?.number ?? 0) + 1;
    const body = answerBody(
      applyEvent(state, last),
      state.message === "" ? [] : [{ role: "assistant", content: state.message }],
    );
    await this.#store.endRun(id, { id: messageId, body }, [{ number, body: JSON.stringify(last) }]);
  }
}

/** As far as the events can be read. */
function readableState(events: readonly NumberedEvent[]): ConversationState {
  let state = emptyState;
  try {
    for (const event of events) state = stateOf([event], state);
  } catch {
    // What follows an event that is damaged has no place.
  }
  return state;
}
