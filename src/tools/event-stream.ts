/** Events that are pushed: how they are queued, and how a caller pulls them. */

/** Resolves when the reader takes the next event. A rejection ends the work that pushes. */
export type Sink<Event> = (event: Event) => Promise<void>;

/** Events of things that run side by side, in the order in which they are told. */
export class EventQueue<Event> {
  readonly #events: { event: Event; told(): void }[] = [];
  #wake = (): void => {};
  /** The sink takes no more. */
  #isOver = false;

  /** Resolves when the sink has taken the event, or takes no more. */
  readonly push = async (event: Event): Promise<void> => {
    if (this.#isOver) return;
    const taken = new Promise<void>((told) => this.#events.push({ event, told }));
    this.#wake();
    await taken;
  };

  /** Passes events on until `work` has settled and none is left. @returns its result @throws its error, and the sink's */
  async drain<Result>(work: Promise<Result>, sink: Sink<Event>): Promise<Result> {
    let isSettled = false;
    const settle = (): void => {
      isSettled = true;
      this.#wake();
    };
    work.then(settle, settle);
    for (;;) {
      const next = this.#events.shift();
      if (next !== undefined) await this.#pass(next, sink);
      else if (isSettled) return await work;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async #pass({ event, told }: { event: Event; told(): void }, sink: Sink<Event>): Promise<void> {
    try {
      await sink(event);
    } catch (error) {
      this.#isOver = true;
      for (const left of this.#events.splice(0)) left.told();
      throw error;
    } finally {
      told();
    }
  }
}

interface Offer<Event> {
  event: Event;
  take(): void;
  refuse(error: unknown): void;
}

/**
 * The events that `push` gives its sink, in their order: who gave one goes on when the next is asked for. Who leaves
 * early makes the sink reject, and waits for the end of `push`. @throws whatever `push` does
 */
export async function* pulled<Event, Result>(
  push: (sink: Sink<Event>) => Promise<Result>,
): AsyncGenerator<Event, Result, void> {
  const offers: Offer<Event>[] = [];
  const ends = { work: false, reading: false };
  let wake = (): void => {};
  const left = (): Error => new DOMException("Nobody reads any more.", "AbortError");
  const work = push(async (event) => {
    if (ends.reading) throw left();
    await new Promise<void>((take, refuse) => {
      offers.push({ event, take, refuse });
      wake();
    });
  });
  const end = (): void => {
    ends.work = true;
    wake();
  };
  work.then(end, end);
  try {
    for (;;) {
      const offer = offers[0];
      if (offer !== undefined) {
        yield offer.event;
        offers.shift();
        offer.take();
      } else if (ends.work) return await work;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    ends.reading = true;
    for (const offer of offers) offer.refuse(left());
    await work.catch(() => {});
  }
}
