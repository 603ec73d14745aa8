/** What is kept of a run so that the next process goes on with it: its held round, what the calls have come to, and the tokens behind. */

import type { WrittenRound } from "../../chat/types.ts";
import {
  applyEvent,
  type ConversationState,
  emptyState,
  type ToolCallState,
} from "../../client/conversation-state.ts";
import type { ConversationEvent } from "../../client/types.ts";
import type { BranchStore, InterruptedRun, NumberedEvent, RunHold } from "../../store/types.ts";
import { FermataError } from "../../errors.ts";
import type { CallJournal, CallState, HeldRound } from "../../tools/oversight.ts";
import { TurnsOfEach } from "../../turns.ts";
import { takenOver } from "../answer/shared-runs.ts";
import { checkGoingOn, DrawnTokens, interrupted } from "../answer/written-round.ts";
import type { RunPlan } from "./run-plan.ts";

/** What began a run. */
export interface KeptRequest {
  chat: RunPlan["chat"];
  model: string | null;
  /** Of the model and its template. */
  fingerprint?: string;
  /** Null: all. */
  tools: readonly string[] | null;
}

export interface KeptRound extends HeldRound {
  /** The ids of the calls in the stream. */
  ids: Record<string, string>;
  /** How many events were told before the round was held. */
  told: number;
}

interface HeldRun {
  id: string;
  /** Ends what this process does for the run. */
  abort: AbortController;
}

export class HeldRounds implements CallJournal {
  readonly #store: BranchStore;
  readonly #run: HeldRun;
  readonly #request: KeptRequest;
  #known: ReadonlyMap<string, CallState>;
  #isHeld: boolean;
  /** Of calls that only read, before their round is held. */
  readonly #early = new Map<string, CallState>();
  /** By call: a pool's connections do not keep the order. */
  readonly #writes = new TurnsOfEach();
  readonly drawn: DrawnTokens;

  /** @param earlier what an earlier process left */
  constructor(store: BranchStore, run: HeldRun, request: KeptRequest, earlier?: Resumption) {
    const { round = null, hold, written } = earlier ?? {};
    this.#store = store;
    this.#run = run;
    this.#request = request;
    this.#isHeld = round !== null;
    this.drawn = new DrawnTokens(written?.tokens);
    this.#known = new Map(Object.entries(hold?.calls ?? {}) as [string, CallState][]);
  }

  /** The store has all that another process needs to go on from here. */
  get outlivesProcess(): boolean {
    return this.#store.lasts && (this.#isHeld || this.drawn.isKept);
  }

  /** Resolves when it is kept. Before a call of the round starts, unless it only reads. */
  async hold(round: KeptRound): Promise<void> {
    await this.#store.setRunHold(this.#run.id, { request: this.#request, round });
    this.#isHeld = true;
    this.drawn.beginRound();
    for (const { id } of round.calls) {
      const state = this.#early.get(id);
      if (state !== undefined) await this.note(id, state);
    }
    this.#early.clear();
  }

  /** The model goes on. */
  leave(): void {
    this.#isHeld = false;
    this.#known = new Map();
  }

  /** The model goes on, behind words that only this process knows. */
  leaveForGood(): void {
    this.leave();
    this.drawn.lose();
  }

  known(callId: string): CallState | undefined {
    return this.#known.get(callId);
  }

  async note(callId: string, state: CallState): Promise<void> {
    if (!this.#isHeld) {
      this.#early.set(callId, state);
      return;
    }
    this.#early.delete(callId);
    await this.#writes.take(callId, async () => {
      if (await this.#store.setHeldCall(this.#run.id, callId, state)) return;
      await this.confirm();
      throw new FermataError("not_found", "The run of this call has ended, or was deleted.");
    });
  }

  /**
   * The first that notices that another process has the run ends it here: none of its calls is decided, refused or told any more.
   * @throws takenOver
   */
  async confirm(): Promise<void> {
    if (!(await this.#store.isElsewhere(this.#run.id))) return;
    this.#run.abort.abort(takenOver);
    throw takenOver;
  }
}

/** Where another process goes on with a run. */
export interface Resumption {
  request: KeptRequest;
  /** The last round that was held. Null: none was. */
  round: KeptRound | null;
  hold: RunHold;
  /** The model was writing, or about to. */
  isWritten: boolean;
  /** Of the round that the model was writing. */
  written: WrittenRound & { calls: readonly ToolCallState[] };
  /** The message when that round began. */
  before: ConversationState;
  /** The message so far. */
  state: ConversationState;
}

/** @throws FermataError engine_crashed | request_quarantined: nobody can go on with it, or nobody may */
export function resumptionOf(
  { hold, events }: Pick<InterruptedRun, "hold" | "events">,
  fingerprint: string,
): Resumption {
  if (hold === null) throw interrupted();
  const request = hold.request as KeptRequest;
  const round = hold.round as KeptRound | null;
  const told = events.slice(round?.told ?? 0);
  const tokens = told.flatMap((event) => event.tokens ?? []);
  const before = stateOf(events.slice(0, round?.told ?? 0));
  const state = stateOf(told, before);
  const isWritten = round === null || told.some(isOfModel);
  checkGoingOn({
    tokens,
    isTold: told.some(isOfModel),
    isWritten,
    resumes: hold.resumes,
    fingerprints: [request.fingerprint, fingerprint],
  });
  const known = new Set(before.toolCalls.map(({ call_id: id }) => id));
  const calls = state.toolCalls.filter(
    ({ call_id: id, tool_call_details: details }) =>
      details.parent_call_id === undefined && !known.has(id),
  );
  const callIds = calls.map(({ call_id: id }) => id);
  return { request, round, hold, isWritten, written: { tokens, callIds, calls }, before, state };
}

/** What the run's request named. */
export function modelOf({ hold }: Pick<InterruptedRun, "hold">): string | null {
  return (hold?.request as KeptRequest | undefined)?.model ?? null;
}

export function stateOf(
  events: readonly NumberedEvent[],
  before: ConversationState = emptyState,
): ConversationState {
  return events.map(({ body }) => JSON.parse(body) as ConversationEvent).reduce(applyEvent, before);
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
