/** The held round of a run, kept so that the next process goes on with it: its calls, and what they have come to. */

import { maxResumes } from "../../agents/delegation-journal.ts";
import type { ConversationEvent } from "../../client/types.ts";
import type { BranchStore, InterruptedRun, RunHold } from "../../store/types.ts";
import type { CallJournal, CallState, HeldRound } from "../../tools/oversight.ts";
import type { RunPlan } from "./run-plan.ts";

/** What began a run. */
export interface KeptRequest {
  chat: RunPlan["chat"];
  model: string | null;
  /** Null: all. */
  tools: readonly string[] | null;
}

export interface KeptRound extends HeldRound {
  /** The ids of the calls in the stream. */
  ids: Record<string, string>;
  /** How many events were told before the round was held. */
  told: number;
}

export class HeldRounds implements CallJournal {
  readonly #store: BranchStore;
  readonly #runId: string;
  readonly #request: KeptRequest;
  #known: ReadonlyMap<string, CallState>;
  #isHeld: boolean;

  /** @param earlier an earlier process held the round */
  constructor(store: BranchStore, runId: string, request: KeptRequest, earlier?: RunHold) {
    this.#store = store;
    this.#runId = runId;
    this.#request = request;
    this.#isHeld = earlier !== undefined;
    this.#known = new Map(Object.entries(earlier?.calls ?? {}) as [string, CallState][]);
  }

  /** The store has all that another process needs to go on from here. */
  get outlivesProcess(): boolean {
    return this.#isHeld;
  }

  /** Resolves when it is kept. Before a call of the round starts, unless it only reads. */
  async hold(round: KeptRound): Promise<void> {
    await this.#store.setRunHold(this.#runId, { request: this.#request, round });
    this.#isHeld = true;
  }

  /** The model goes on. */
  leave(): void {
    this.#isHeld = false;
    this.#known = new Map();
  }

  known(callId: string): CallState | undefined {
    return this.#known.get(callId);
  }

  async note(callId: string, state: CallState): Promise<void> {
    if (this.#isHeld) await this.#store.setHeldCall(this.#runId, callId, state);
  }
}

/** The round that another process can go on with. Null: there is none, or the model went on behind it. */
export function heldRound({
  hold,
  events,
}: InterruptedRun): { request: KeptRequest; round: KeptRound; hold: RunHold } | null {
  if (hold === null || hold.resumes >= maxResumes) return null;
  const round = hold.round as KeptRound;
  if (events.slice(round.told).some(isOfModel)) return null;
  return { request: hold.request as KeptRequest, round, hold };
}

/** What a sub-agent says belongs to a call of the round. */
function isOfModel({ body }: { body: string }): boolean {
  const { message, details = [] } = JSON.parse(body) as ConversationEvent;
  const isOwn = details.some(
    (detail) =>
      (detail.type === "reasoning" || detail.type === "arguments") &&
      detail.parent_call_id === undefined,
  );
  return message !== "" || isOwn;
}
