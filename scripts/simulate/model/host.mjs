/**
 * How many times as long something takes when so many replicas of a machine compute. `known`: as was measured with 1, 2,
 * 3 …; beyond that it goes on in proportion.
 */
export function slowdownOf(known, computing) {
  if (computing <= known.length) return known[Math.max(computing, 1) - 1];
  return (known.at(-1) * computing) / known.length;
}

/** The cores of one machine. Replicas that compute at the same time slow each other down, as was measured. */
export class Host {
  #simulation;
  #jobs = new Set();
  #changes = 0;
  #settledAt = 0;

  constructor(simulation) {
    this.#simulation = simulation;
  }

  /** How many replicas compute now. */
  get computing() {
    return this.#jobs.size;
  }

  /** Computes what takes `milliseconds` alone, with its own `slowdowns` beside others; `done` gets what it took. */
  compute(milliseconds, slowdowns, done) {
    this.#settle();
    this.#jobs.add({ left: milliseconds, slowdowns, began: this.#simulation.now, done });
    this.#awaitNext();
  }

  #settle() {
    const passed = this.#simulation.now - this.#settledAt;
    for (const job of this.#jobs) job.left -= passed / slowdownOf(job.slowdowns, this.computing);
    this.#settledAt = this.#simulation.now;
  }

  #timeLeft({ left, slowdowns }) {
    return Math.max(left, 0) * slowdownOf(slowdowns, this.computing);
  }

  #awaitNext() {
    const change = ++this.#changes;
    if (this.computing === 0) return;
    const jobs = [...this.#jobs];
    const first = jobs.reduce((a, b) => (this.#timeLeft(b) < this.#timeLeft(a) ? b : a));
    this.#simulation.after(
      this.#timeLeft(first),
      () => change === this.#changes && this.#end(first),
    );
  }

  #end(job) {
    this.#settle();
    this.#jobs.delete(job);
    this.#awaitNext();
    job.done(this.#simulation.now - job.began);
  }
}
