import { EventQueue } from "./event-queue.mjs";

/** Simulated time, in milliseconds from 0 on. Nothing in a simulation reads another clock. */
export class Simulation {
  #events = new EventQueue();
  now = 0;

  after(milliseconds, happens) {
    this.#events.push(this.now + milliseconds, happens);
  }

  /** Until nothing is left to happen, or to the time `end`. */
  run(end = Infinity) {
    for (;;) {
      const event = this.#events.pop();
      if (event === undefined || event.at > end) return;
      this.now = event.at;
      event.happens();
    }
  }
}
