/** Events while they come: several may read them, from any of them on, each at its own pace. */
export class LiveLog<Event> {
  readonly #events: Event[] = [];
  readonly #numberOf: (event: Event) => number;
  #hasEnded = false;
  #wake: () => void = () => {};
  #change = this.#nextChange();

  /** @param numberOf grows from event to event */
  constructor(numberOf: (event: Event) => number) {
    this.#numberOf = numberOf;
  }

  get events(): readonly Event[] {
    return this.#events;
  }

  append(event: Event): void {
    this.#events.push(event);
    this.#notify();
  }

  end(): void {
    this.#hasEnded = true;
    this.#notify();
  }

  /** Events numbered above `after`, as they come, to the last. Ends early when `signal` is aborted. */
  async *read(after: number, signal?: AbortSignal): AsyncGenerator<Event, void, void> {
    signal?.addEventListener("abort", () => this.#notify(), { once: true });
    let index = this.#events.findIndex((event) => this.#numberOf(event) > after);
    if (index < 0) index = this.#events.length;
    for (;;) {
      const change = this.#change;
      for (; index < this.#events.length && !signal?.aborted; index++) {
        const event = this.#events[index]!;
        if (this.#numberOf(event) > after) yield event;
      }
      if (signal?.aborted || (this.#hasEnded && index >= this.#events.length)) return;
      await change;
    }
  }

  #notify(): void {
    const wake = this.#wake;
    this.#change = this.#nextChange();
    wake();
  }

  #nextChange(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }
}
