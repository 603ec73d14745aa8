/** A round that is being written: its tokens, kept with the events that tell of it, and what was told, for the next process to go on behind. */

import { maxResumes } from "../../agents/delegation-journal.ts";
import { FermataError } from "../../errors.ts";
import type { RunEvent } from "../../tools/types.ts";

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

interface ToldTexts {
  content?: string;
  /** How many tokens' log-probabilities were told with the content. */
  logprobs?: number;
  reasoning: string;
  /** How much of the arguments of each call was told, in the order of the calls. Infinity: all, and that it is whole. */
  calls: readonly number[];
}

/**
 * What was told of the round that the model was writing when its process ended. The next process says the round once more, from
 * its tokens: what was told is left out, and the rest follows it.
 */
export class ToldRound {
  /** What is not said again yet. */
  readonly #left: { content: string; logprobs: number; reasoning: string; calls: number[] };

  constructor({ content = "", logprobs = 0, reasoning, calls }: ToldTexts) {
    this.#left = { content, logprobs, reasoning, calls: [...calls] };
  }

  /** What is new in an event. Null: nothing. @throws FermataError engine_crashed: something else was told */
  newPart(event: RunEvent): RunEvent | null {
    const { calls } = this.#left;
    switch (event.type) {
      case "content":
        return this.#newContent(event);
      case "reasoning": {
        const text = this.#newText("reasoning", event.text);
        return text === "" ? null : { ...event, text };
      }
      case "call-start":
        return event.index < calls.length ? null : event;
      case "call-arguments": {
        const known = calls[event.index] ?? 0;
        if (known === 0) return event;
        const delta = event.delta.slice(known);
        calls[event.index] = Math.max(0, known - event.delta.length);
        return delta === "" ? null : { ...event, delta };
      }
      case "call-end":
        return calls[event.index] === Infinity ? null : event;
      case "hold":
        // The next round counts its calls anew.
        calls.length = 0;
        return event;
      default:
        return event;
    }
  }

  #newContent(event: Extract<RunEvent, { type: "content" }>): RunEvent | null {
    const text = this.#newText("content", event.text);
    if (event.logprobs === undefined) return text === "" ? null : { ...event, text };
    const logprobs = event.logprobs.slice(this.#left.logprobs);
    this.#left.logprobs -= event.logprobs.length - logprobs.length;
    return text === "" && logprobs.length === 0 ? null : { ...event, text, logprobs };
  }

  #newText(kind: "content" | "reasoning", said: string): string {
    const told = this.#left[kind];
    const length = Math.min(told.length, said.length);
    if (told.slice(0, length) !== said.slice(0, length)) {
      const message =
        "What was told before the restart does not fit what the model writes now. Ask again.";
      throw new FermataError("engine_crashed", message);
    }
    this.#left[kind] = told.slice(length);
    return said.slice(length);
  }
}
