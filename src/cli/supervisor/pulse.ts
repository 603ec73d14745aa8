/**
 * Whether a worker hangs. It tells once a second that its JavaScript thread runs, and for how long the inference
 * thread has been in its current step. Time is counted in ticks of this process: where both processes were
 * stopped, as in a machine that slept, nothing is overdue.
 */

/** Between two heartbeats, and between two looks. */
export const pulseMs = 1000;
/** A heartbeat that is late by so many ticks is only late. */
const slackTicks = 2;

export interface PulseLimits {
  /** Of the JavaScript thread: without a heartbeat. Seconds. */
  loop: number;
  /** Of the inference thread: in one step. Seconds. */
  step: number;
}

export type Hang = { thread: "javascript" | "inference"; seconds: number };

export class Pulse {
  readonly #limits: PulseLimits;
  readonly #timer: NodeJS.Timeout;
  #silentTicks = 0;
  #stepAgeMs = 0;
  /** Since the step that runs was first seen. */
  #stepTicks = 0;

  /** @param onHang is called once */
  constructor(limits: PulseLimits, onHang: (hang: Hang) => void) {
    this.#limits = limits;
    this.#timer = setInterval(() => {
      const hang = this.#tick();
      if (hang === null) return;
      this.stop();
      onHang(hang);
    }, pulseMs);
    this.#timer.unref();
  }

  /** The worker has told of itself. @param stepAgeMs 0 while the inference thread is idle */
  beat(stepAgeMs: number): void {
    this.#silentTicks = 0;
    if (stepAgeMs <= this.#stepAgeMs) this.#stepTicks = 0;
    this.#stepAgeMs = stepAgeMs;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #tick(): Hang | null {
    this.#silentTicks += 1;
    this.#stepTicks += 1;
    const { loop, step } = this.#limits;
    if (isOver(this.#silentTicks, loop)) return { thread: "javascript", seconds: loop };
    if (isOver(this.#stepTicks, step) && this.#stepAgeMs > step * 1000)
      return { thread: "inference", seconds: step };
    return null;
  }
}

function isOver(ticks: number, seconds: number): boolean {
  return (ticks - slackTicks) * pulseMs > seconds * 1000;
}
