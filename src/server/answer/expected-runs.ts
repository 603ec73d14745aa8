/** Runs that an earlier process left: known from the first request on, they go on once their models are in memory. */

import type { FermataError } from "../../errors.ts";
import { abortionOf } from "../../waits.ts";

export interface ExpectedRun {
  id: string;
  owner: string;
  /** Of the message that it writes, if it writes one. */
  conversationId?: string | undefined;
  /** Of the request. Runs of one model go on one after the other, those of several do not wait for each other. */
  model: string | null;
  /** Gives it up: it then waits for no other. */
  abort: AbortController;
}

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
