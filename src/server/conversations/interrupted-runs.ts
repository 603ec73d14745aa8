/** Runs that an earlier process left: what can go on goes on, and the rest ends. */

import { applyEvent, type ConversationState, emptyState } from "../../client/conversation-state.ts";
import type { FermataError } from "../../errors.ts";
import type { BranchStore, InterruptedRun, NumberedEvent } from "../../store/types.ts";
import { interrupted } from "../answer/written-round.ts";
import { toFermataError } from "../http/error-replies.ts";
import { interruptedEnd } from "./calls.ts";
import { modelOf, stateOf } from "./held-round.ts";
import { answerBody } from "./message-body.ts";
import { endOfFailure, type Runner, type RunnerContext } from "./runner.ts";

export class InterruptedRuns {
  readonly #store: BranchStore;
  readonly #runner: Runner;
  /** Of runs that this process takes over. */
  #context: RunnerContext | null = null;
  /** Expected runs by their conversations. */
  readonly #expected = new Map<string, string>();

  constructor(store: BranchStore, runner: Runner) {
    this.#store = store;
    this.#runner = runner;
  }

  async adopt(context: RunnerContext): Promise<void> {
    this.#context = context;
    await this.take();
  }

  /** The run of a conversation that goes on once its model is in memory. */
  expectedIn(conversationId: string): string | null {
    return this.#expected.get(conversationId) ?? null;
  }

  /** Where several models are served, nobody waits for one that must be loaded for a run. */
  async take(): Promise<void> {
    for (const run of await this.#store.takeInterrupted()) {
      const { id, owner, conversationId } = run;
      const work = this.#context?.active.begin();
      const abort = work?.controller ?? new AbortController();
      this.#expected.set(conversationId, id);
      const expected = { id, owner, model: modelOf(run), abort };
      const goesOn = this.#runner.live.expected.add(expected, async () => {
        await this.#goOn(run, abort.signal);
        work?.end();
        if (this.#expected.get(conversationId) === id) this.#expected.delete(conversationId);
      });
      if (this.#context?.services.models === undefined) await goesOn;
    }
  }

  async #goOn(run: InterruptedRun, signal: AbortSignal): Promise<void> {
    const failure = await this.#begin(run, signal);
    // The next process goes on with it.
    if (failure === null || (signal.aborted && failure.code === "engine_closed")) return;
    await this.#fail(run, failure).catch((error: unknown) => {
      // The store tries again, and the other runs go on.
      this.#context?.log.error({ run: run.id, err: error }, "the end of a run was not stored");
    });
  }

  /** @returns why it cannot go on */
  async #begin(run: InterruptedRun, signal: AbortSignal): Promise<FermataError | null> {
    const context = this.#context;
    if (context === null) return interrupted();
    try {
      await this.#runner.goOn(run, { ...context, startedAt: performance.now() }, signal);
      return null;
    } catch (error) {
      if (!signal.aborted) context.log.warn({ run: run.id, err: error }, "a run cannot go on");
      return toFermataError(error);
    }
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
