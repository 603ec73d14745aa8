import { makeEngine } from "./engine.mjs";

/** As long as the engine's thread sleeps when sequences wait and nothing can be computed. */
const idleWaitMs = 250;

/** One `fermata serve`: its engine's loop in simulated time. */
export class Replica {
  #simulation;
  #host;
  #times;
  #options;
  #engine;
  #turns = new Map();
  #commands = [];
  #computing = false;
  #lives = 0;
  #past = {};
  isAlive = true;
  /** Requests that it has and has not ended: what a proxy counts. */
  served = 0;
  computedMs = 0;

  constructor({ simulation, host, times, options, name }) {
    this.#simulation = simulation;
    this.#host = host;
    this.#times = times;
    this.#options = options;
    this.#engine = makeEngine(options);
    this.name = name;
  }

  /** The turn ends by one of its methods `finish` and `fail`. */
  receive(turn) {
    this.served += 1;
    this.#turns.set(turn.id, turn);
    const life = this.#lives;
    const wait = this.#times.requestMs(turn.promptTokens, this.#host.computing);
    this.#simulation.after(wait, () => {
      if (life !== this.#lives) return;
      this.#commands.push(() => this.#engine.submit(turn));
      if (!this.#computing) this.#step();
    });
  }

  /** Its process is gone, and everything that it had in memory. */
  die() {
    this.isAlive = false;
    this.#lives += 1;
    this.#past = this.counts();
    this.#engine = makeEngine(this.#options);
    const turns = [...this.#turns.values()];
    this.#turns.clear();
    this.#commands = [];
    this.#computing = false;
    this.served = 0;
    for (const turn of turns) turn.fail();
  }

  start() {
    this.isAlive = true;
  }

  /** The engine's counters, over all its lives. */
  counts() {
    const stats = this.#engine.stats();
    const summed = [
      "promptTokens",
      "cachedTokens",
      "prefilledTokens",
      "fileBytesRead",
      "fileBytesWritten",
    ];
    for (const name of summed) stats[name] += this.#past[name] ?? 0;
    return stats;
  }

  #step() {
    for (const command of this.#commands.splice(0)) command();
    const { now } = this.#simulation;
    const work = this.#engine.step(now);
    if (work === undefined) return this.#sleep();
    const life = this.#lives;
    this.#computing = true;
    for (const { kind, id, reused } of work.events)
      if (kind === "admitted") this.#turns.get(id).admit(now, reused);
    this.#host.compute(this.#times.stepOf(work), (took) => {
      if (life !== this.#lives) return;
      this.#computing = false;
      this.computedMs += took;
      this.#engine.took(took);
      for (const event of work.events) this.#tell(event);
      this.#step();
    });
  }

  #tell({ kind, id, message }) {
    const turn = this.#turns.get(id);
    if (kind === "first") turn.hear(this.#simulation.now);
    if (kind === "failed") throw new Error(`${this.name} failed a turn: ${message}`);
    if (kind !== "finished") return;
    this.#turns.delete(id);
    this.served -= 1;
    turn.finish();
  }

  /** Until a request comes, or what it waits for does: a file, or time. */
  #sleep() {
    const { waiting, nextFileAt } = this.#engine.stats();
    if (waiting === 0 && nextFileAt < 0) return;
    const file = nextFileAt < 0 ? Infinity : Math.max(nextFileAt - this.#simulation.now, 0);
    const life = this.#lives;
    this.#simulation.after(Math.min(file + 0.01, idleWaitMs), () => {
      if (life === this.#lives && !this.#computing) this.#step();
    });
  }
}
