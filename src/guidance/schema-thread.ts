/**
 * Compiles schemas and validates by them beside the JavaScript thread, which has the tokens of other requests to
 * pass on. A thread can be ended at any instruction: that is what bounds a schema made to take for ever.
 */

import { readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { FermataError } from "../errors.ts";
import { compiledFile } from "../package-root.ts";
import { type SchemaJob, type SchemaOutcome, failed } from "./schema-jobs.ts";

/** Times the limit, in which the thread neither runs nor waits for a processor. */
const maxIdle = 5;
/** Between two looks at a thread that others keep waiting. */
const leastPauseMs = 5;
const maxWaiting = 32;
const maxHeapMegabytes = 512;

/** Of a thread since it began, in milliseconds. */
export interface ThreadTimes {
  ran: number;
  /** It could have run, but others had the processors. */
  waited: number;
}

interface Batch {
  jobs: readonly SchemaJob[];
  outcomes: SchemaOutcome[];
  resolve: (outcomes: SchemaOutcome[]) => void;
}

const entry = compiledFile("guidance/schema-worker.js");

/**
 *   no worker -> starting -> idle <-> at work on the first batch
 *       ^___________________________________| too slow, out of memory
 */
export class SchemaThread {
  readonly #batches: Batch[] = [];
  #worker: Worker | null = null;
  #isReady = false;
  #clock: string | null = null;
  #timer: NodeJS.Timeout | undefined;
  readonly #limitMs: number;
  readonly #timesOf: (file: string | null) => ThreadTimes;

  /**
   * @param limitMs milliseconds for jobs that were given together, from when the thread turns to them: of processor time
   *   where the system tells it, as on a busy machine others have most of the rest
   * @param timesOf of the thread with this file
   */
  constructor(limitMs: number, timesOf = timesOfThread) {
    this.#limitMs = limitMs;
    this.#timesOf = timesOf;
  }

  /**
   * @returns an outcome for each job
   * @throws FermataError queue_full
   */
  async run(jobs: readonly SchemaJob[]): Promise<SchemaOutcome[]> {
    if (this.#batches.length >= maxWaiting)
      throw new FermataError(
        "queue_full",
        "Too many large schemas are waiting. Try again in a few seconds.",
      );
    return new Promise((resolve) => {
      this.#batches.push({ jobs, outcomes: [], resolve });
      if (this.#batches.length === 1) this.#begin();
    });
  }

  #begin(): void {
    const [batch] = this.#batches;
    if (batch === undefined) {
      // An idle thread keeps no process alive.
      this.#worker?.unref();
      return;
    }
    this.#worker ??= this.#start();
    this.#worker.ref();
    if (!this.#isReady) return;
    this.#worker.postMessage(batch.jobs);
    const atStart = this.#timesOf(this.#clock);
    this.#watch(performance.now(), atStart);
  }

  #watch(start: number, atStart: ThreadTimes): void {
    const limitMs = this.#limitMs;
    const { ran, waited } = this.#timesOf(this.#clock);
    const used = ran - atStart.ran;
    const idle = performance.now() - start - used - (waited - atStart.waited);
    if (used >= limitMs || idle >= limitMs * maxIdle) this.#abandon(tooSlow(limitMs));
    else {
      const pause = Math.max(limitMs - used, leastPauseMs);
      this.#timer = setTimeout(() => this.#watch(start, atStart), pause);
    }
  }

  #start(): Worker {
    const worker = new Worker(entry, {
      // ajv calls itself for each level and for each keyword in a row.
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMegabytes, stackSizeMb: 16 },
    });
    worker.on("message", (message: { ready: string | null } | SchemaOutcome) => {
      if (worker !== this.#worker) return;
      if ("ready" in message) {
        this.#isReady = true;
        this.#clock = message.ready;
        this.#begin();
      } else this.#take(message);
    });
    worker.on("error", (error: NodeJS.ErrnoException) => {
      if (worker !== this.#worker) return;
      this.#abandon(
        error.code === "ERR_WORKER_OUT_OF_MEMORY"
          ? failed("schema_too_large", "The schema takes too much memory. Send a simpler one.")
          : failed("internal_error", `The thread for schemas failed: ${error.message}`),
      );
    });
    return worker;
  }

  #take(outcome: SchemaOutcome): void {
    const [batch] = this.#batches;
    if (batch === undefined) return;
    batch.outcomes.push(outcome);
    if (batch.outcomes.length === batch.jobs.length) this.#finish();
  }

  /** @param outcome of the job at work; those behind it have no time left */
  #abandon(outcome: SchemaOutcome): void {
    void this.#worker?.terminate();
    this.#worker = null;
    this.#isReady = false;
    const [batch] = this.#batches;
    if (batch !== undefined) {
      batch.outcomes.push(outcome);
      while (batch.outcomes.length < batch.jobs.length) batch.outcomes.push(tooSlow(this.#limitMs));
    }
    this.#finish();
  }

  #finish(): void {
    clearTimeout(this.#timer);
    const batch = this.#batches.shift();
    batch?.resolve(batch.outcomes);
    this.#begin();
  }
}

/** Without a file: all the time on the wall. */
function timesOfThread(file: string | null): ThreadTimes {
  if (file === null) return { ran: performance.now(), waited: 0 };
  try {
    const [ran = 0, waited = 0] = readFileSync(file, "utf8").split(" ");
    return { ran: Number(ran) / 1e6, waited: Number(waited) / 1e6 };
  } catch {
    // The thread has ended; its event is on the way.
    return { ran: Infinity, waited: 0 };
  }
}

function tooSlow(limitMs: number): SchemaOutcome {
  const problem = `The schema takes more than ${limitMs / 1000} s of processor time.`;
  return failed("schema_timeout", `${problem} Send a simpler one.`);
}
