/**
 * How many times as long something takes beside other replicas of its machine that compute.
 * @param known rows by how many of the others compute chunks, columns by how many decode: as was measured. Beside more
 *   than that it goes on in proportion, with the others' kinds mixed as they are.
 * @param others { chunk, decode }: how many compute what
 */
export function slowdownBeside(known, { chunk, decode }) {
  const others = chunk + decode;
  if (others < known.length) return known[chunk][decode];
  const most = known.length - 1;
  const chunks = Math.round((chunk * most) / others);
  return (known[chunks][most - chunks] * (others + 1)) / known.length;
}

/** The cores of one machine. Replicas that compute at the same time slow each other down, as was measured. */
export class Host {
  #simulation;
  #jobs = new Set();
  #counts = { chunk: 0, decode: 0 };
  #changes = 0;
  #settledAt = 0;

  constructor(simulation) {
    this.#simulation = simulation;
  }

  /** How many replicas compute now. */
  get computing() {
    return this.#jobs.size;
  }

  /** Computes a step (see `ServiceTimes.stepOf`); `done` gets what it took. */
  compute({ milliseconds, kind, slowdown }, done) {
    this.#settle();
    this.#counts[kind] += 1;
    this.#jobs.add({ left: milliseconds, kind, slowdown, began: this.#simulation.now, done });
    this.#awaitNext();
  }

  #slowdownOf({ kind, slowdown }) {
    return slowdown({ ...this.#counts, [kind]: this.#counts[kind] - 1 });
  }

  #settle() {
    const passed = this.#simulation.now - this.#settledAt;
    for (const job of this.#jobs) job.left -= passed / this.#slowdownOf(job);
    this.#settledAt = this.#simulation.now;
  }

  #timeLeft(job) {
    return Math.max(job.left, 0) * this.#slowdownOf(job);
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
    this.#counts[job.kind] -= 1;
    this.#awaitNext();
    job.done(this.#simulation.now - job.began);
  }
}
