/** Responses and runs of processes that share a store: followed, cancelled and taken over across them. */

import type { FastifyInstance } from "fastify";
import { type ErrorCode, FermataError } from "../../errors.ts";
import type { SharedStore } from "../../store/types.ts";
import { toFermataError } from "../http/error-replies.ts";

/** The reason of runs that end here and go on elsewhere. */
export const takenOver = new FermataError("engine_closed", "Another server goes on with this run.");

/** What tells of changes is a hint: who missed it looks by itself. */
const lookMs = 1000;
/** How long another process may take to cancel. */
const cancelMs = 5000;

interface Taking {
  shared: SharedStore | null | undefined;
  /** Takes what is left, if anything. */
  take(): Promise<void>;
  /** Ends what is here. */
  cancel(id: string, reason: FermataError): Promise<void>;
}

/**
 * What earlier processes left is taken over before the first request, and later what a process leaves that shares the
 * store. What needs a model that is not in memory is known from then on, and goes on once that is there.
 */
export function takeOverLeft(app: FastifyInstance, { shared, take, cancel }: Taking): void {
  app.addHook("onReady", take);
  if (!shared) return;
  let isBusy = false;
  let isClosing = false;
  app.addHook("preClose", async () => {
    isClosing = true;
  });
  shared.onLeft(() => {
    if (isBusy || isClosing) return;
    isBusy = true;
    take()
      .catch((error: unknown) => app.log.warn({ err: error }, "runs of another server not taken"))
      .finally(() => (isBusy = false));
  });
  shared.onLost((id) => cancel(id, takenOver));
  shared.onCancel((id) => {
    void cancel(id, new FermataError("cancelled", "It was cancelled."));
  });
}

type Handed =
  | { value: unknown }
  | { refused: { code: ErrorCode; message: string; param: string | null } };

/**
 * Gives what a client sent to the process that has what it is about, or takes that over, while it is open.
 * @returns what that process made of it; null: no process has it @throws as there
 */
export async function handOver(
  about: string,
  body: unknown,
  { shared, isOpen }: { shared: SharedStore; isOpen(): Promise<boolean> },
): Promise<{ value: unknown } | null> {
  const answer = (await shared.deliver(about, body, isOpen)) as Handed | null;
  if (answer === null || "value" in answer) return answer;
  const { code, message, param } = answer.refused;
  throw new FermataError(code, message, { param: param ?? undefined });
}

/** @param take what is to be done; null: what it is about is not here */
export function takeHandedOver<Body>(
  shared: SharedStore | null | undefined,
  take: (about: string, body: Body) => (() => Promise<unknown>) | null,
): void {
  shared?.onDelivery((about, body) => {
    const work = take(about, body as Body);
    return work && outcomeOf(work);
  });
}

/** Undefined: another process goes on with what it is about, and answers. */
async function outcomeOf(work: () => Promise<unknown>): Promise<Handed | undefined> {
  try {
    return { value: (await work()) ?? null };
  } catch (error) {
    if (error === takenOver) return undefined;
    const { code, message, param } = toFermataError(error);
    return { refused: { code, message, param } };
  }
}

/** The events of what another process writes, until nobody works on it any more. */
export async function* followStored<Event>(
  id: string,
  shared: SharedStore,
  {
    read,
    numberOf,
    after,
    viewer,
  }: {
    read(after: number): Promise<Event[]>;
    numberOf(event: Event): number;
    after: number;
    viewer?: AbortSignal | undefined;
  },
): AsyncGenerator<Event, void, void> {
  const changes = new Changes(id, shared, viewer);
  let last = after;
  try {
    const hasLeft = (): boolean => viewer?.aborted === true;
    while (!hasLeft()) {
      const change = changes.next();
      // Asked first: what is read then is all of it.
      const isAtWork = await shared.isAtWork(id);
      if (hasLeft()) return;
      for (const event of await read(last)) {
        last = numberOf(event);
        yield event;
      }
      if (!isAtWork) return;
      await change;
    }
  } finally {
    changes.close();
  }
}

/** Asks the process that works on it. Resolves when it has ended, or that process does not answer. */
export async function cancelElsewhere(id: string, shared: SharedStore): Promise<void> {
  const viewer = AbortSignal.timeout(cancelMs);
  const changes = new Changes(id, shared, viewer);
  try {
    await shared.cancel(id);
    for (;;) {
      const change = changes.next();
      if (viewer.aborted || !(await shared.isAtWork(id))) return;
      await change;
    }
  } finally {
    changes.close();
  }
}

class Changes {
  readonly #stop: () => void;
  readonly #viewer: AbortSignal | undefined;
  #wake = (): void => {};

  constructor(id: string, shared: SharedStore, viewer: AbortSignal | undefined) {
    const wake = (): void => this.#wake();
    const stop = shared.follow(id, wake);
    viewer?.addEventListener("abort", wake, { once: true });
    this.#viewer = viewer;
    this.#stop = () => {
      stop();
      viewer?.removeEventListener("abort", wake);
    };
  }

  /** Resolves at the next change from now on, or after a while. */
  async next(): Promise<void> {
    if (this.#viewer?.aborted === true) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, lookMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  close(): void {
    this.#wake();
    this.#stop();
  }
}
