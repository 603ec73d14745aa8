/** Models of a folder: files, loads, leases. Type-only. */

/** What can be loaded. */
export interface ModelFile {
  /** Of the requests. */
  name: string;
  /** Of its first part. */
  path: string;
  paths: readonly string[];
  /** Of all its parts. */
  bytes: number;
  /** Unix seconds of the file's last change. */
  created: number;
  /** Reads its header. Null: the file is no model that can be loaded. */
  describe(): ModelHeader | null;
}

/** What a file says of itself before it is loaded. */
export interface ModelHeader {
  architecture: string;
  /** `Q4_K_M`, as the name says or, without one, the file. */
  quantization: string | null;
  trainedContext: number | undefined;
  /** Null: it cannot chat. */
  chatTemplate: string | null;
}

export interface Loading {
  /** Called with 0 .. 1. */
  onProgress(fraction: number): void;
  /** Gives the load up. */
  signal: AbortSignal;
}

export interface PoolTerms<Model> {
  /** What there is now; it may change. @throws FermataError, if that cannot be found out */
  files(): ModelFile[];
  /** @throws FermataError; `out_of_memory` makes the pool unload another model and try again */
  load(file: ModelFile, loading: Loading): Promise<Model>;
  unload(model: Model): Promise<void>;
  /** Models in memory at once, at least 1. */
  most: number;
  /** Milliseconds without a use after which a model leaves; negative: it stays. */
  keepAliveMs: number;
  /** How long a request waits for room. Default five minutes. */
  patienceMs?: number;
  /** Requests that may wait. Default 256. */
  mostWaiting?: number;
}

export type ModelState = "unloaded" | "loading" | "loaded" | "unloading";

export interface PoolEntry<Model> {
  file: ModelFile;
  state: ModelState;
  /** Of a load, 0 .. 1. */
  progress: number;
  model: Model | null;
  /** Leases on it. */
  uses: number;
  /** Requests that wait for it. */
  waiting: number;
  /** When it leaves if nobody uses it, in milliseconds since 1970; null: it stays, or is in use. */
  leavesAt: number | null;
  /** It never leaves. */
  isPinned: boolean;
}

/** A model that stays in memory until all work that was named with `until` has settled. */
export interface ModelLease<Model> {
  readonly model: Model;
  until(work: Promise<unknown>): void;
}

export interface TakeOptions {
  /** The request has gone: it waits no longer. */
  signal?: AbortSignal | undefined;
  /** It waits however long that takes, and is never one too many. */
  isPatient?: boolean;
  /** Instead of the pool's, from now on. */
  keepAliveMs?: number | undefined;
}
