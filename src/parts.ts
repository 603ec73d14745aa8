/**
 * Long work of the JavaScript thread in parts, so that other streams go on meanwhile: a generator that yields where it
 * may be interrupted.
 */

import { setImmediate } from "node:timers/promises";

export type Parts<Result> = Generator<undefined, Result, undefined>;

/** What a function that works in parts makes. */
export type PartsResult<Work extends (...args: never[]) => Parts<unknown>> =
  ReturnType<Work> extends Parts<infer Result> ? Result : never;

/** Work goes on for so long before the event loop has its turn, in milliseconds. */
const turnMs = 8;

/** Without interruption. @throws what `parts` does */
export function finish<Result>(parts: Parts<Result>): Result {
  for (;;) {
    const { done, value } = parts.next();
    if (done === true) return value;
  }
}

/** With pauses, but for what takes less than a turn. @throws what `parts` does */
export async function finishInTurns<Result>(parts: Parts<Result>): Promise<Result> {
  const pauses = new Pauses();
  for (;;) {
    const { done, value } = parts.next();
    if (done === true) return value;
    if (pauses.isDue) await pauses.take();
  }
}

/** The same for work that is no generator. */
export class Pauses {
  #start = performance.now();

  get isDue(): boolean {
    return performance.now() - this.#start >= turnMs;
  }

  async take(): Promise<void> {
    await setImmediate();
    this.#start = performance.now();
  }
}
