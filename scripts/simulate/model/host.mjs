/** The cores of one machine. Replicas that compute at the same time slow each other down, as was measured. */
export class Host {
  #simulation;
  #slowdowns;
  #jobs = new Set();
  #changes = 0;
  #settledAt = 0;

  /** @param slowdowns how many times as long a step takes when 1, 2, 3 … replicas compute; the last one goes on in proportion */
  constructor(simulation, slowdowns = [1]) {
    this.#simulation = simulation;
    this.#slowdowns = slowdowns;
  }

  slowdown(computing) {
    const known = this.#slowdowns;
    if (computing <= known.length) return known[Math.max(computing, 1) - 1];
    return (known.at(-1) * computing) / known.length;
  }

  /** Computes what takes `milliseconds` alone; `done` gets what it took. */
  compute(milliseconds, done) {
    this.#settle();
    this.#jobs.add({ left: milliseconds, began: this.#simulation.now, done });
    this.#awaitNext();
  }

  /** What else a machine does beside the computing replicas takes so much longer. */
  besides() {
    return this.slowdown(this.#jobs.size);
  }

  #settle() {
    const passed = this.#simulation.now - this.#settledAt;
    const speed = 1 / this.slowdown(this.#jobs.size);
    for (const job of this.#jobs) job.left -= passed * speed;
    this.#settledAt = this.#simulation.now;
  }

  #awaitNext() {
    const change = ++this.#changes;
    if (this.#jobs.size === 0) return;
    const [first] = [...this.#jobs].toSorted((a, b) => a.left - b.left);
    const wait = Math.max(first.left, 0) * this.slowdown(this.#jobs.size);
    this.#simulation.after(wait, () => change === this.#changes && this.#end(first));
  }

  #end(job) {
    this.#settle();
    this.#jobs.delete(job);
    this.#awaitNext();
    job.done(this.#simulation.now - job.began);
  }
}
