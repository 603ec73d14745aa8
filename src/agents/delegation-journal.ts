/** What a sub-agent has come to, kept beside the call that it works on: another process goes on with its held round. */

import type { CallJournal, CallState, DelegationState, HeldRound } from "../tools/oversight.ts";

/** A round that ends the process each time is not gone on with forever. */
export const maxResumes = 3;

type Said = Pick<DelegationState, "text" | "citations">;

const nothing: DelegationState = {
  at: "delegated",
  round: null,
  number: 0,
  text: "",
  citations: [],
  resumes: 0,
};

/** Under which a call of the sub-agent is kept. Models may give a later round the ids of an earlier one. */
export function keyBelow(delegationId: string, round: number, callId: string): string {
  return `${delegationId}/${round}/${callId}`;
}

export class DelegationJournal implements CallJournal {
  /** What an earlier process left. Null: none worked on the call. */
  readonly earlier: DelegationState | null;
  readonly #above: CallJournal;
  readonly #callId: string;
  #number: number;
  #isHeld: boolean;

  /** @param above of the run that made the call */
  constructor(above: CallJournal, callId: string) {
    const known = above.known(callId);
    this.earlier = known?.at === "delegated" ? known : null;
    this.#above = above;
    this.#callId = callId;
    this.#number = this.earlier?.number ?? 0;
    this.#isHeld = this.heldRound !== null;
  }

  /** The round from which the sub-agent goes on. */
  get heldRound(): HeldRound | null {
    return this.earlier?.round ?? null;
  }

  /** It ended too many processes. */
  get isGivenUp(): boolean {
    return this.earlier !== null && this.earlier.resumes >= maxResumes;
  }

  /** Before the sub-agent begins. @throws what hinders the journal */
  async begin(): Promise<void> {
    if (this.earlier === null) await this.#above.note(this.#callId, nothing);
    else if (this.heldRound === null) await this.countResume();
  }

  /** Before the model goes on with what an earlier process left. */
  async countResume(): Promise<void> {
    const earlier = this.earlier ?? nothing;
    await this.#above.note(this.#callId, { ...earlier, resumes: earlier.resumes + 1 });
  }

  /** Before a call of the round starts, unless it only reads. */
  async hold(round: HeldRound, said: Said): Promise<void> {
    this.#number += 1;
    const state = { ...nothing, ...said, round, number: this.#number };
    await this.#above.note(this.#callId, state);
    this.#isHeld = true;
  }

  /** The model goes on. */
  leave(): void {
    this.#isHeld = false;
  }

  known(callId: string): CallState | undefined {
    if (!this.#isHeld) return undefined;
    return this.#above.known(keyBelow(this.#callId, this.#number, callId));
  }

  async note(callId: string, state: CallState): Promise<void> {
    if (!this.#isHeld) return;
    await this.#above.note(keyBelow(this.#callId, this.#number, callId), state);
  }

  async confirm(): Promise<void> {
    await this.#above.confirm();
  }
}
