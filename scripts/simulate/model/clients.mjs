// Agents: each sends a turn, waits for its answer, runs a tool, and sends the next turn with all that was said.

/** The lease that a server gives a conversation that it expects back (`Chat`'s default). */
const leaseMs = 300_000;
/** A client whose replica died sends its turn again after this. */
const retryMs = 500;

/** One turn on its way: what the replica is given of it, and what is recorded. */
class Turn {
  #simulation;
  #onEnd;
  tries = 1;

  constructor(simulation, fields, onEnd) {
    Object.assign(this, fields);
    this.#simulation = simulation;
    this.#onEnd = onEnd;
    this.sentAt = simulation.now;
  }

  admit(now, reused) {
    this.admittedAt ??= now;
    this.reused = reused;
  }

  hear(now) {
    this.firstAt = now;
  }

  finish() {
    this.endedAt = this.#simulation.now;
    this.#onEnd(this);
  }

  fail() {
    this.#onEnd(this, { isLost: true });
  }
}

export class Clients {
  #simulation;
  #router;
  #ids = 0;
  /** Every turn that has ended, in that order. */
  turns = [];
  lost = 0;

  constructor(simulation, router) {
    this.#simulation = simulation;
    this.#router = router;
  }

  /** Sessions that begin when their `startMs` says. */
  arrive(sessions) {
    for (const session of sessions)
      this.#simulation.after(session.startMs, () => this.#begin(session, () => {}));
  }

  /** So many sessions at a time, one behind the other. */
  keep(atOnce, sessions) {
    const waiting = [...sessions];
    const next = () => {
      const session = waiting.shift();
      if (session) this.#begin(session, next);
    };
    for (let client = 0; client < atOnce; client++) next();
  }

  #begin(session, onEnd) {
    this.#send(session, 0, 0, onEnd);
  }

  #send(session, index, before, onEnd) {
    const step = session.steps[index];
    const turn = new Turn(
      this.#simulation,
      {
        id: ++this.#ids,
        session,
        index,
        seed: session.seed,
        prefixSeed: session.prefixSeed,
        sharedTokens: session.sharedTokens,
        promptTokens: before + step.freshTokens,
        freshTokens: step.freshTokens,
        generatedTokens: step.generatedTokens,
        leaseMs,
      },
      (ended, { isLost } = {}) => {
        if (isLost) this.#sendAgain(ended);
        else this.#answered(ended, onEnd);
      },
    );
    this.#route(turn);
  }

  #route(turn) {
    const replica = this.#router.choose(turn);
    turn.replica = replica;
    replica.receive(turn);
  }

  #sendAgain(turn) {
    this.lost += 1;
    turn.tries += 1;
    this.#simulation.after(retryMs, () => this.#route(turn));
  }

  #answered(turn, onEnd) {
    this.turns.push(turn);
    const { session, index } = turn;
    const { toolMs } = session.steps[index];
    const after = turn.promptTokens + turn.generatedTokens;
    this.#simulation.after(toolMs, () => {
      if (index + 1 < session.steps.length) return this.#send(session, index + 1, after, onEnd);
      this.#router.forget(session);
      onEnd();
    });
  }
}
