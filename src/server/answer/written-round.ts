/** The tokens of a round that is being written, kept with the events that tell of it: the next process goes on behind them. */

import { maxResumes } from "../../agents/delegation-journal.ts";
import { FermataError } from "../../errors.ts";

/** In place of tokens that another process cannot go on with. */
const unknownToken = -1;

export class DrawnTokens {
  /** Since the last event. */
  #drawn: number[] = [];
  /** In this round. */
  #hasDrawn: boolean;
  #isKept = true;

  /** @param earlier what an earlier process drew in this round */
  constructor(earlier: readonly number[] = []) {
    this.#hasDrawn = earlier.length > 0;
  }

  /** Whatever was told of this round, its tokens are kept. Another server's model tells none. */
  get isKept(): boolean {
    return this.#isKept;
  }

  /** As `ChatRequest.onTokens`. */
  readonly draw = (_count: number, tokens: Iterable<number> = []): void => {
    for (const token of tokens) this.#drawn.push(token);
  };

  /** For the next event. @param isOfModel it tells of the model's words */
  take(isOfModel: boolean): readonly number[] {
    this.#hasDrawn ||= this.#drawn.length > 0;
    if (isOfModel && !this.#hasDrawn) this.#isKept = false;
    return this.#drawn.splice(0);
  }

  /** What was told until now was not the model's. */
  begin(): void {
    this.#isKept = true;
  }

  /** What was written belongs to a held round, which is kept. */
  beginRound(): void {
    this.#begin([]);
    this.#isKept = true;
  }

  /** The model goes on behind words that only this process knows. */
  lose(): void {
    this.#begin([unknownToken]);
    this.#isKept = false;
  }

  #begin(drawn: number[]): void {
    this.#drawn = drawn;
    this.#hasDrawn = false;
  }
}

/** A round that was written at two ends of processes is not written again: it may be what ended them. */
const maxWritten = 1;

/** @throws FermataError engine_crashed | request_quarantined: nobody can go on with it, or nobody may */
export function checkGoingOn({
  tokens,
  isTold,
  isWritten,
  resumes,
  fingerprints: [before, now],
}: {
  /** Of the round that the model was writing. */
  tokens: readonly number[];
  /** Words of that round were told. */
  isTold: boolean;
  /** The model was writing, or about to. */
  isWritten: boolean;
  resumes: number;
  /** Of the model then and now. */
  fingerprints: readonly [string | undefined, string];
}): void {
  if (tokens.includes(unknownToken) || (isTold && tokens.length === 0)) throw interrupted();
  if (isWritten && resumes >= maxWritten) throw quarantined("twice while it wrote this answer");
  if (resumes >= maxResumes)
    throw quarantined("three times when the model went on behind the same calls of this answer");
  if (isWritten && before !== now) throw changed();
}

export function interrupted(): FermataError {
  return new FermataError("engine_crashed", "The server ended before the answer did. Ask again.");
}

function changed(): FermataError {
  const message =
    "The server ended before the answer did, and serves another model or template now. Ask again.";
  return new FermataError("engine_crashed", message);
}

function quarantined(when: string): FermataError {
  const message = `The server ended ${when}, which may be the cause: it is not written again.`;
  return new FermataError("request_quarantined", message);
}
