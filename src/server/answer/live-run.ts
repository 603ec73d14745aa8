/** Runs whose readers may use other connections than the one that started them. Keeps their events for the readers, and knows those that an earlier process left. */

import type { FermataError } from "../../errors.ts";
import type { Sink } from "../../tools/event-stream.ts";
import { abortionOf } from "../../waits.ts";

/**
 * Work that pushes events. It starts at once, but its first event waits for `deliver`, so an earlier failure can be
 * refused.
 */
export class BegunWork<Event> {
  /** Resolves at the first event. Rejects with the error that ends the work earlier. */
  readonly first: Promise<void>;
  readonly #ended: Promise<void>;
  #accept: (sink: Sink<Event>) => void = () => {};
  #refuse: (reason: unknown) => void = () => {};

  constructor(push: (sink: Sink<Event>) => Promise<void>) {
    const accepted = new Promise<Sink<Event>>((accept, refuse) => {
      this.#accept = accept;
      this.#refuse = refuse;
    });
    accepted.catch(() => {});
    let begin = (): void => {};
    const begun = new Promise<void>((resolve) => (begin = resolve));
    this.#ended = push(async (event) => {
      begin();
      const sink = await accepted;
      await sink(event);
    });
    this.first = Promise.race([begun, this.#ended]);
    this.first.catch(() => {});
  }

  /** Delivers every event. Resolves when the work ends. @throws the error that ends it */
  async deliver(sink: Sink<Event>): Promise<void> {
    this.#accept(sink);
    await this.#ended;
  }

  /** Instead of `deliver`: ends the work. Resolves when it has ended. */
  async abandon(reason: unknown): Promise<void> {
    this.#refuse(reason);
    await this.#ended.catch(() => {});
  }
}

export interface LiveRunOptions<Event> {
  id: string;
  /** The owner of the request. */
  owner: string;
  /** Ends the work that makes the events. */
  abort: AbortController;
  /** The number of an event; it grows. */
  numberOf(event: Event): number;
  /**
   * Null: the run belongs to its connection. It has one reader, waits until it has taken each event, and keeps none.
   * Otherwise events are stored here before anybody sees them, those of one moment all or none, and any number of readers follow
   * at their own pace.
   */
  keep: ((events: readonly Event[]) => Promise<void>) | null;
  /** What another process told, with its numbers. */
  earlier?: readonly Event[] | undefined;
}

export class LiveRun<Event> {
  readonly id: string;
  readonly owner: string;
  readonly ended: Promise<void>;
  readonly #options: LiveRunOptions<Event>;
  readonly #events: Event[];
  #failure: { error: unknown } | null = null;
  #hasEnded = false;
  /** The one reader of a connection has gone. */
  #isLeft = false;
  #end: () => void = () => {};
  #wake: () => void = () => {};
  #change = this.#nextChange();

  constructor(options: LiveRunOptions<Event>) {
    this.id = options.id;
    this.owner = options.owner;
    this.#options = options;
    this.#events = [...(options.earlier ?? [])];
    this.ended = new Promise((resolve) => (this.#end = resolve));
  }

  cancel(reason: FermataError): void {
    this.#options.abort.abort(reason);
  }

  /** Events of one moment: all of them are kept before anybody sees one. */
  async publish(...events: Event[]): Promise<void> {
    if (events.length === 0) return;
    const { keep } = this.#options;
    await keep?.(events);
    this.#events.push(...events);
    this.#notify();
    const last = events.at(-1)!;
    while (keep === null && !this.#isLeft && this.#events.includes(last)) await this.#change;
  }

  /** Ends the run. @param last is stored already @param failure for the readers */
  finish(last?: Event, failure?: { error: unknown }): void {
    this.#failure = failure ?? null;
    this.#hasEnded = true;
    if (last !== undefined) this.#events.push(last);
    this.#end();
    this.#notify();
  }

  /** The events with numbers above `after`, up to the last. Ends early when `viewer` is aborted. @throws the run's failure */
  async *read(after: number, viewer?: AbortSignal): AsyncGenerator<Event, void, void> {
    const { numberOf, keep } = this.#options;
    viewer?.addEventListener("abort", () => this.#notify(), { once: true });
    let index = keep === null ? 0 : this.#events.findIndex((event) => numberOf(event) > after);
    if (index < 0) index = this.#events.length;
    try {
      for (;;) {
        const change = this.#change;
        while (index < this.#events.length && viewer?.aborted !== true) {
          const event = this.#events[index]!;
          if (numberOf(event) > after) yield event;
          if (keep === null) this.#forget();
          else index += 1;
        }
        if (viewer?.aborted === true) return;
        if (this.#hasEnded && index >= this.#events.length) {
          if (this.#failure !== null) throw this.#failure.error;
          return;
        }
        await change;
      }
    } finally {
      this.#isLeft = true;
      this.#notify();
    }
  }

  #forget(): void {
    this.#events.shift();
    this.#notify();
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

/** Current runs by id, the newest last, and those that are expected. Ended runs are read from the store. */
export class LiveRuns<Run extends Pick<LiveRun<unknown>, "id" | "owner" | "ended" | "cancel">> {
  readonly #byId = new Map<string, Run>();
  readonly expected = new ExpectedRuns();

  get isEmpty(): boolean {
    return this.#byId.size === 0 && this.expected.size === 0;
  }

  add(run: Run): void {
    this.#byId.set(run.id, run);
    void run.ended.then(() => this.#byId.delete(run.id));
  }

  find(owner: string, id: string): Run | null {
    const run = this.#byId.get(id);
    return run?.owner === owner ? run : null;
  }

  /** As `find`, once it is known whether an expected run goes on. */
  async meet(owner: string, id: string): Promise<Run | null> {
    if (this.expected.has(owner, id)) await this.expected.settled(id);
    return this.find(owner, id);
  }

  /** The events of an expected run, once it is known whether it goes on. @param read null: there are none any more */
  async *later<Event>(
    id: string,
    viewer: AbortSignal,
    read: () => Promise<AsyncIterable<Event> | null>,
  ): AsyncGenerator<Event, void, void> {
    await this.expected.settled(id, viewer);
    const events = viewer.aborted ? null : await read();
    if (events !== null) yield* events;
  }

  /** Ends a run, expected or not. Resolves when it has ended: to false, if there is none. */
  async end(owner: string, id: string, reason: FermataError): Promise<boolean> {
    const isHere = this.expected.has(owner, id) || this.find(owner, id) !== null;
    if (isHere) await this.cancelById(id, reason);
    return isHere;
  }

  /** Whoever its owner is: another process asks. Resolves when it has ended, if it is here. */
  async cancelById(id: string, reason: FermataError): Promise<void> {
    await this.expected.giveUp(id, reason);
    const run = this.#byId.get(id);
    if (run !== undefined) await this.cancel([run], reason);
  }

  where(isWanted: (run: Run) => boolean): Run[] {
    return [...this.#byId.values()].filter(isWanted);
  }

  /** Resolves when they have ended. */
  async cancel(runs: readonly Run[], reason: FermataError): Promise<void> {
    for (const run of runs) run.cancel(reason);
    await Promise.all(runs.map((run) => run.ended));
  }
}

interface ExpectedRun {
  id: string;
  owner: string;
  /** Of the message that it writes, if it writes one. */
  conversationId?: string | undefined;
  /** Of the request. Runs of one model go on one after the other, those of several do not wait for each other. */
  model: string | null;
  /** Gives it up: it then waits for no other. */
  abort: AbortController;
}

/** Runs that an earlier process left: known from the first request on, they go on once their models are in memory. */
export class ExpectedRuns {
  readonly #byId = new Map<string, ExpectedRun & { settled: Promise<void> }>();
  readonly #lanes = new Map<string | null, Promise<void>>();

  get size(): number {
    return this.#byId.size;
  }

  /**
   * Resolves when `goOn` has. From then on the run is live, or will never be.
   * @param goOn never rejects
   */
  async add(run: ExpectedRun, goOn: () => Promise<void>): Promise<void> {
    const { id, model } = run;
    const before = this.#lanes.get(model) ?? Promise.resolve();
    const turn = Promise.race([before, abortionOf(run.abort.signal)]);
    const settled = turn.then(goOn).finally(() => this.#byId.delete(id));
    const lane = Promise.all([before, settled]).then(() => {
      if (this.#lanes.get(model) === lane) this.#lanes.delete(model);
    });
    this.#lanes.set(model, lane);
    this.#byId.set(id, { ...run, settled });
    await settled;
  }

  has(owner: string, id: string): boolean {
    return this.#byId.get(id)?.owner === owner;
  }

  /** The last run of a conversation. */
  inConversation(id: string): string | null {
    return [...this.#byId.values()].findLast((run) => run.conversationId === id)?.id ?? null;
  }

  idsOf(owner: string): string[] {
    return [...this.#byId.values()].filter((run) => run.owner === owner).map(({ id }) => id);
  }

  /** Resolves when it is live or will never be; at once, if it is not expected. */
  async settled(id: string, viewer?: AbortSignal): Promise<void> {
    const expected = this.#byId.get(id);
    if (expected === undefined || viewer?.aborted === true) return;
    const left = viewer === undefined ? [] : [abortionOf(viewer)];
    await Promise.race([expected.settled, ...left]);
  }

  /** Resolves when it is live or will never be. */
  async giveUp(id: string, reason: FermataError): Promise<void> {
    this.#byId.get(id)?.abort.abort(reason);
    await this.settled(id);
  }

  async giveAllUp(reason: FermataError): Promise<void> {
    await Promise.all([...this.#byId.keys()].map((id) => this.giveUp(id, reason)));
  }
}
