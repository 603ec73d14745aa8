/** What a reader of calls takes and tells. Type-only. */

import type { JsonSchema } from "../../types.ts";

export interface CallSink {
  start(name: string): void;
  arguments(delta: string): void;
  /** The arguments are complete. */
  end(): void;
}

/** The tools a call may be for, with their parameters' schemas where these are known. */
export type OfferedTools = Pick<ReadonlyMap<string, JsonSchema | undefined>, "has" | "get">;

/**
 * `undecided`: nothing of what was fed has been told. `call`: a call's start was told. `between`: it ended and
 * another may follow. `done`: the calls ended. `refused`: what has not been told is no call.
 */
export type ReaderState = "undecided" | "call" | "between" | "done" | "refused";

/** Reads what stands after a call's opening marker, a character at a time. */
export interface CallReader {
  readonly state: ReaderState;
  /** A closing marker here is text of the arguments. */
  readonly inString: boolean;
  /**
   * Not to be called once `done` or `refused`.
   * @returns false when `character` is not the reader's: the calls ended, or were refused, before it.
   */
  feed(character: string): boolean;
  /** Nothing follows: a call that was told ends as it is. The state is `done` or `refused` then. */
  close(): void;
}

/** @param offered null: a marker told that a call is meant; any name will do */
export type MakeReader = (sink: CallSink, offered: OfferedTools | null) => CallReader;

/** Calls whose own opening the model left out. */
export interface UnmarkedCalls {
  /** Begins them; the readers read it, too, and accept only offered names. */
  readonly open: string;
  readonly reader: MakeReader;
  /** Where a grammar made the model close what it opened. */
  readonly guidedReader: MakeReader;
}
