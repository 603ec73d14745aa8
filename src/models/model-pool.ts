/**
 * Which models are in memory. A model is loaded when it is asked for, one at a time; where there is no room, the one
 * that was used longest ago leaves, once nobody uses it. Whoever waits is served in order, so a model in constant use
 * cannot keep others out: its next requests wait behind them.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { FermataError } from "../errors.ts";
import { didYouMean } from "../near-names.ts";
import { longestDelayMs } from "../waits.ts";
import type {
  ModelFile,
  ModelLease,
  ModelState,
  PoolEntry,
  PoolTerms,
  TakeOptions,
} from "./types.ts";

interface Waiter<Model> {
  name: string;
  keepAliveMs: number | undefined;
  resolve(lease: ModelLease<Model>): void;
  reject(error: unknown): void;
}

interface Resident<Model> {
  file: ModelFile;
  state: Exclude<ModelState, "unloaded">;
  progress: number;
  model: Model | null;
  uses: number;
  usedAt: number;
  keepAliveMs: number;
  /** Nobody takes it any more. */
  isLeaving: boolean;
  /** It leaves since another one needs its room, and stays if that one is not wanted any more. */
  makesRoom: boolean;
  isPinned: boolean;
  timer: NodeJS.Timeout | undefined;
  leavesAt: number | null;
}

const defaultPatienceMs = 5 * 60_000;
const defaultMostWaiting = 256;
const unloadPollMs = 20;

export class ModelPool<Model> {
  readonly #terms: PoolTerms<Model>;
  readonly #residents = new Map<string, Resident<Model>>();
  readonly #waiters: Waiter<Model>[] = [];
  readonly #closing = new AbortController();
  readonly #listeners: ((model: Model) => void)[] = [];
  #work: Promise<void> | null = null;
  /** A load has failed for it: another model must leave before the next one. */
  #lacksMemory = false;

  constructor(terms: PoolTerms<Model>) {
    this.#terms = terms;
  }

  /** Every model that may be asked for. */
  list(): PoolEntry<Model>[] {
    return this.#terms.files().map((file) => {
      const resident = this.#residents.get(file.name);
      const waiting = this.#waiters.filter(({ name }) => name === file.name).length;
      if (resident === undefined)
        return {
          file,
          state: "unloaded",
          progress: 0,
          model: null,
          uses: 0,
          waiting,
          leavesAt: null,
          isPinned: false,
        };
      const { state, progress, model, uses, leavesAt, isPinned } = resident;
      return { file, state, progress, model, uses, waiting, leavesAt, isPinned };
    });
  }

  /** The models in memory, the one that was used last first. */
  loaded(): Model[] {
    return [...this.#residents.values()]
      .toSorted((a, b) => b.usedAt - a.usedAt)
      .flatMap(({ model }) => (model === null ? [] : [model]));
  }

  /** A model in memory that somebody uses stays there, whatever was planned for it. */
  pin(name: string): void {
    const resident = this.#residents.get(name)!;
    clearTimeout(resident.timer);
    resident.leavesAt = null;
    resident.isLeaving = false;
    resident.makesRoom = false;
    resident.isPinned = true;
  }

  /**
   * How long a model that is in memory stays there when nobody uses it; none is loaded for it.
   * @returns whether it may leave @throws FermataError not_found
   */
  keep(name: string, keepAliveMs: number): boolean {
    const resident = this.#residents.get(name);
    if (resident === undefined && !this.has(name)) throw this.#unknown(name);
    if (resident === undefined) return true;
    resident.keepAliveMs = keepAliveMs;
    if (resident.state === "loaded") this.#rest(resident);
    return !resident.isPinned;
  }

  /** Calls `listener` with each model that is loaded from now on. */
  onLoad(listener: (model: Model) => void): void {
    this.#listeners.push(listener);
  }

  has(name: string): boolean {
    return this.#residents.has(name) || this.#terms.files().some((file) => file.name === name);
  }

  /**
   * Resolves when the model is in memory.
   * @throws FermataError not_found | queue_full | model_busy | cancelled | engine_closed, and what its load throws
   */
  async take(name: string, options: TakeOptions = {}): Promise<ModelLease<Model>> {
    const { signal, keepAliveMs, isPatient = false } = options;
    this.#checkOpen();
    signal?.throwIfAborted();
    const resident = this.#residents.get(name);
    if (resident !== undefined && canBeTaken(resident)) return this.#lease(resident, keepAliveMs);
    if (!this.has(name)) throw this.#unknown(name);
    const isFull = this.#waiters.length >= (this.#terms.mostWaiting ?? defaultMostWaiting);
    if (isFull && !isPatient)
      throw new FermataError("queue_full", "Too many requests wait for a model to be loaded.");
    return await this.#wait(name, options);
  }

  /** Resolves when the model has left memory, once nobody uses it. @throws FermataError not_found | unsupported_value (pinned) */
  async unload(name: string): Promise<void> {
    const resident = this.#residents.get(name);
    if (resident === undefined && !this.has(name)) throw this.#unknown(name);
    if (resident === undefined) return;
    if (resident.isPinned)
      throw new FermataError(
        "unsupported_value",
        `The agents use ${name}, so it stays in memory. Unload another model.`,
        { param: "model" },
      );
    resident.isLeaving = true;
    resident.makesRoom = false;
    this.#advance();
    while (this.#residents.get(name) === resident) await sleep(unloadPollMs);
  }

  /** Gives loads up and unloads all. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort(closedError());
    for (const waiter of this.#waiters.splice(0)) waiter.reject(closedError());
    await this.#work;
    const residents = [...this.#residents.values()];
    this.#residents.clear();
    for (const { timer } of residents) clearTimeout(timer);
    await Promise.all(
      residents.map(async ({ model }) => model !== null && (await this.#terms.unload(model))),
    );
  }

  async #wait(name: string, options: TakeOptions): Promise<ModelLease<Model>> {
    const { signal, keepAliveMs, isPatient = false } = options;
    const patienceMs = this.#terms.patienceMs ?? defaultPatienceMs;
    return await new Promise((resolve, reject) => {
      const settled = new AbortController();
      const waiter: Waiter<Model> = {
        name,
        keepAliveMs,
        resolve: (lease) => (settled.abort(), resolve(lease)),
        reject: (error) => (settled.abort(), reject(error)),
      };
      const leave = (error: unknown): void => {
        const at = this.#waiters.indexOf(waiter);
        if (at >= 0) this.#waiters.splice(at, 1);
        waiter.reject(error);
        this.#keepRoom();
      };
      const timer = isPatient ? undefined : setTimeout(() => leave(this.#busy(name)), patienceMs);
      settled.signal.addEventListener("abort", () => clearTimeout(timer));
      const gone = (): void => leave(signal?.reason);
      signal?.addEventListener("abort", gone, { signal: settled.signal });
      this.#waiters.push(waiter);
      this.#advance();
    });
  }

  /** One load or unload at a time, until there is nothing to do or everything that could leave is in use. */
  #advance(): void {
    if (this.#work !== null || this.#closing.signal.aborted) return;
    const step = this.#nextStep();
    if (step === null) return;
    this.#work = step().finally(() => {
      this.#work = null;
      this.#advance();
    });
  }

  #nextStep(): (() => Promise<void>) | null {
    const leaving = [...this.#residents.values()].find(
      ({ isLeaving, uses, state }) => isLeaving && uses === 0 && state === "loaded",
    );
    if (leaving !== undefined) return () => this.#unload(leaving);
    const next = this.#waiters.find(({ name }) => !this.#residents.has(name));
    if (next === undefined || this.#lacksMemory) return null;
    if (this.#residents.size < this.#terms.most) return () => this.#load(next.name);
    this.#makeRoom();
    const idle = [...this.#residents.values()].find(
      ({ isLeaving, uses }) => isLeaving && uses === 0,
    );
    return idle === undefined ? null : () => this.#unload(idle);
  }

  /** One leaves: of those that nobody uses, or of all, the one that was used longest ago. */
  #makeRoom(): boolean {
    const residents = [...this.#residents.values()].filter(({ isPinned }) => !isPinned);
    if (residents.some(({ isLeaving }) => isLeaving)) return true;
    const idle = residents.filter(({ uses }) => uses === 0);
    const candidates = idle.length > 0 ? idle : residents;
    const [oldest] = candidates.toSorted((a, b) => a.usedAt - b.usedAt);
    if (oldest === undefined) return false;
    oldest.isLeaving = true;
    oldest.makesRoom = true;
    return true;
  }

  /** Who waited for a model went away: what was to make room for it stays, if nobody else needs the room. */
  #keepRoom(): void {
    if (this.#waiters.some(({ name }) => !this.#residents.has(name))) return;
    this.#lacksMemory = false;
    for (const resident of this.#residents.values()) {
      if (!resident.makesRoom || resident.state !== "loaded") continue;
      resident.isLeaving = false;
      resident.makesRoom = false;
      this.#serve(resident);
      this.#rest(resident);
    }
  }

  async #load(name: string): Promise<void> {
    let file: ModelFile | undefined;
    try {
      file = this.#terms.files().find((known) => known.name === name);
      if (file === undefined) throw this.#unknown(name);
    } catch (error) {
      return this.#refuse(name, error);
    }
    const resident: Resident<Model> = {
      file,
      state: "loading",
      progress: 0,
      model: null,
      uses: 0,
      usedAt: performance.now(),
      keepAliveMs: this.#terms.keepAliveMs,
      isLeaving: false,
      makesRoom: false,
      isPinned: false,
      timer: undefined,
      leavesAt: null,
    };
    this.#residents.set(name, resident);
    try {
      resident.model = await this.#terms.load(file, {
        signal: this.#closing.signal,
        onProgress: (fraction) => void (resident.progress = fraction),
      });
    } catch (error) {
      this.#residents.delete(name);
      const lacksMemory = error instanceof FermataError && error.code === "out_of_memory";
      // Once another one has left, it is tried again.
      this.#lacksMemory = lacksMemory && this.#makeRoom();
      if (!this.#lacksMemory) this.#refuse(name, error);
      return;
    }
    resident.state = "loaded";
    for (const listener of this.#listeners) listener(resident.model);
    this.#serve(resident);
    this.#rest(resident);
  }

  async #unload(resident: Resident<Model>): Promise<void> {
    clearTimeout(resident.timer);
    resident.state = "unloading";
    const { model } = resident;
    resident.model = null;
    try {
      await this.#terms.unload(model!);
    } finally {
      this.#residents.delete(resident.file.name);
      this.#lacksMemory = false;
    }
  }

  /** Everybody who waits for it. */
  #serve(resident: Resident<Model>): void {
    const mine = this.#waiters.filter(({ name }) => name === resident.file.name);
    for (const waiter of mine) {
      this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
      waiter.resolve(this.#lease(resident, waiter.keepAliveMs));
    }
  }

  #refuse(name: string, error: unknown): void {
    for (const waiter of this.#waiters.filter((one) => one.name === name)) {
      this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
      waiter.reject(error);
    }
  }

  #lease(resident: Resident<Model>, keepAliveMs: number | undefined): ModelLease<Model> {
    clearTimeout(resident.timer);
    resident.leavesAt = null;
    resident.uses += 1;
    resident.usedAt = performance.now();
    if (keepAliveMs !== undefined) resident.keepAliveMs = keepAliveMs;
    let works = 0;
    const release = (): void => {
      works -= 1;
      if (works > 0) return;
      resident.uses -= 1;
      resident.usedAt = performance.now();
      this.#rest(resident);
      this.#advance();
    };
    return {
      model: resident.model!,
      until(work) {
        works += 1;
        void work.then(release, release);
      },
    };
  }

  /** Nobody uses it: it leaves after a while. */
  #rest(resident: Resident<Model>): void {
    const { keepAliveMs, uses, isPinned } = resident;
    if (uses > 0 || isPinned || keepAliveMs < 0 || keepAliveMs > longestDelayMs) return;
    resident.leavesAt = Date.now() + keepAliveMs;
    clearTimeout(resident.timer);
    resident.timer = setTimeout(() => {
      resident.isLeaving = true;
      this.#advance();
    }, keepAliveMs).unref();
  }

  #busy(name: string): FermataError {
    const used = [...this.#residents.keys()].join(", ");
    const why = this.#lacksMemory ? "not enough memory" : "no room";
    const remedy = this.#lacksMemory
      ? "with a smaller --ctx-size, or take models of a smaller quantization"
      : "with a larger --models-max";
    return new FermataError(
      "model_busy",
      `There was ${why} for ${name}: ${used} are in memory and in use. Try again later, or start the server ${remedy}.`,
    );
  }

  #unknown(name: string): FermataError {
    const names = this.#terms.files().map((file) => file.name);
    const near = didYouMean(name, names);
    return new FermataError(
      "not_found",
      `There is no model "${name}".${near} GET /v1/models lists them.`,
      {
        param: "model",
      },
    );
  }

  #checkOpen(): void {
    if (this.#closing.signal.aborted) throw closedError();
  }
}

function canBeTaken({ state, isLeaving }: Resident<unknown>): boolean {
  return state === "loaded" && !isLeaving;
}

function closedError(): FermataError {
  return new FermataError("engine_closed", "The server is shutting down. Try again later.");
}
