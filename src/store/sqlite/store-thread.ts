/**
 * The store on a thread of its own: no statement, no slow disk and no other process's lock holds up the streams. Calls and
 * their outcomes are plain data, and outcomes come in the order of the calls.
 */

import { Worker } from "node:worker_threads";
import { type ErrorCode, FermataError } from "../../errors.ts";
import { compiledFile } from "../../package-root.ts";
import type { OpenStore } from "../types.ts";
import type { StoreOptions } from "../retention-limits.ts";

export interface StoreThreadData {
  path: string;
  options: StoreOptions;
}

type Part = "store" | "responses" | "conversations" | "branches";

export interface StoreCall {
  part: Part;
  method: string;
  values: unknown[];
}

export type StoreOutcome =
  | { value: unknown }
  | { refused: { code: ErrorCode; message: string; param: string | null } }
  | { failed: string };

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

const entry = compiledFile("store/sqlite/store-worker.js");

/** @throws FermataError as the constructor of `SqliteStore` */
export async function openStoreThread(
  path: string,
  options: StoreOptions = {},
): Promise<OpenStore> {
  const data: StoreThreadData = { path, options };
  const worker = new Worker(entry, { workerData: data });
  const waiting: Waiting[] = [];
  let failure: unknown = null;
  const outcome = (): Promise<unknown> =>
    new Promise((resolve, reject) => waiting.push({ resolve, reject }));
  const fail = (error: unknown): void => {
    failure = error;
    for (const { reject } of waiting.splice(0)) reject(error);
  };
  worker.on("message", (message: StoreOutcome) => {
    const { resolve, reject } = waiting.shift()!;
    if ("value" in message) resolve(message.value);
    else reject("refused" in message ? refusal(message.refused) : new Error(message.failed));
  });
  worker.on("error", fail);
  worker.on("exit", () => fail(failure ?? closed()));

  const call = async (part: Part, method: string, values: unknown[]): Promise<unknown> => {
    if (failure !== null) throw failure;
    worker.postMessage({ part, method, values } satisfies StoreCall);
    return await outcome();
  };
  const proxy = (part: Part, own: Record<string, unknown>): unknown =>
    new Proxy(own, {
      get: (_own, method) => {
        // Who awaits the store itself asks for `then`.
        if (typeof method === "symbol" || method === "then") return undefined;
        return method in own ? own[method] : (...values: unknown[]) => call(part, method, values);
      },
    });
  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    if (failure === null) await call("store", "close", []);
    await worker.terminate();
  };
  try {
    await outcome();
  } catch (error) {
    await worker.terminate();
    throw error;
  }
  return proxy("store", {
    responses: proxy("responses", {}),
    conversations: proxy("conversations", {}),
    branches: proxy("branches", { lasts: true }),
    shared: null,
    close: () => (closing ??= close()),
  }) as OpenStore;
}

function refusal({ code, message, param }: Extract<StoreOutcome, { refused: object }>["refused"]) {
  return new FermataError(code, message, { param: param ?? undefined });
}

function closed(): FermataError {
  return new FermataError("engine_closed", "The server is shutting down. Try again later.");
}
