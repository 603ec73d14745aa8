/** What a process keeps for later: bounded, as a server runs for weeks. */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { NativeAddon } from "../native/addon-types.ts";

/**
 * How much the heap may grow after a collection, in percent of what was alive then. V8 itself lets it grow to several
 * times as much: what a worker collects late, for hours, looks like a leak.
 */
const heapGrowthPercent = 50;
const everyMs = 60_000;

/** For all threads of this process, from their next collection on. */
export function boundHeap(): void {
  setFlagsFromString(`--heap-growing-percent=${heapGrowthPercent}`);
}

/** What the process freed and the C library keeps goes back to the system once a minute. */
export class GivesMemoryBack {
  readonly #timer: NodeJS.Timeout;
  #isRunning = false;

  constructor(addon: Pick<NativeAddon, "giveBackMemory">) {
    this.#timer = setInterval(() => {
      // The pool is busy for longer than that.
      if (this.#isRunning) return;
      this.#isRunning = true;
      void addon.giveBackMemory().finally(() => (this.#isRunning = false));
    }, everyMs).unref();
  }

  close(): Promise<void> {
    clearInterval(this.#timer);
    return Promise.resolve();
  }
}

/**
 * For a process that allocates so little that V8 would not collect for hours. A collection of its small heap takes
 * some milliseconds.
 * @returns what ends it
 */
export function collectNowAndThen(): () => void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const timer = setInterval(collect, everyMs).unref();
  return () => clearInterval(timer);
}
