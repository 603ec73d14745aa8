/** Events that are pushed: how they are queued, and how a caller pulls them. */

/** Resolves when the reader takes the next event. A rejection ends the work that pushes. */
export type Sink<Event> = (event: Event) => Promise<void>;

/** Events of things that run side by side, in the order in which they are told. */
export class EventQueue<Event> {
  readonly #events: Event[] = [];
  #wake = (): void => {};

  readonly push = (event: Event): void => {
    this.#events.push(event);
    this.#wake();
  };

  /** Passes events on until `work` has settled and none is left. @returns its result @throws its error */
  async drain<Result>(work: Promise<Result>, sink: Sink<Event>): Promise<Result> {
    let isSettled = false;
    const settle = (): void => {
      isSettled = true;
      this.#wake();
    };
    work.then(settle, settle);
    for (;;) {
      const event = this.#events.shift();
      if (event !== undefined) await sink(event);
      else if (isSettled) return await work;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

interface Offer<Event> {
  event: Event;
  take(): void;
  refuse(error: unknown): void;
}

/**
 * The events that `push` gives its sink, one at a time: it goes on when the next one is asked for. Who leaves early
 * makes its sink reject, and waits for its end. @throws whatever `push` does
 */
export async function* pulled<Event, Result>(
  push: (sink: Sink<Event>) => Promise<Result>,
): AsyncGenerator<Event, Result, void> {
  const state: { offer: Offer<Event> | null; isOver: boolean } = { offer: null, isOver: false };
  let wake = (): void => {};
  const work = push(
    (event) =>
      new Promise((take, refuse) => {
        state.offer = { event, take, refuse };
        wake();
      }),
  );
  const end = (): void => {
    state.isOver = true;
    wake();
  };
  work.then(end, end);
  try {
    for (;;) {
      const { offer } = state;
      if (offer !== null) {
        yield offer.event;
        state.offer = null;
        offer.take();
      } else if (state.isOver) return await work;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    state.offer?.refuse(new DOMException("Nobody reads any more.", "AbortError"));
    await work.catch(() => {});
  }
}
