/** The entry of the store's thread: calls in, their outcomes out, in order. */

import { parentPort, workerData } from "node:worker_threads";
import { FermataError } from "../../errors.ts";
import { SqliteStore } from "./sqlite-store.ts";
import type { StoreCall, StoreOutcome, StoreThreadData } from "./store-thread.ts";

const { path, options } = workerData as StoreThreadData;

function outcomeOf(error: unknown): StoreOutcome {
  // The database's errors cannot be sent as they are.
  if (!(error instanceof FermataError)) return { failed: (error as Error).message };
  const { code, message, param } = error;
  return { refused: { code, message, param } };
}

function open(): SqliteStore | null {
  try {
    const store = new SqliteStore(path, options);
    parentPort!.postMessage({ value: null } satisfies StoreOutcome);
    return store;
  } catch (error) {
    parentPort!.postMessage(outcomeOf(error));
    return null;
  }
}

const store = open();
parentPort!.on("message", ({ part, method, values }: StoreCall) => {
  const target = (part === "store" ? store : store?.[part]) as unknown as Record<
    string,
    (...values: unknown[]) => unknown
  >;
  // What they wait for is there at once: a call has ended before the next one comes, and the order stays.
  void (target[method]!(...values) as Promise<unknown>).then(
    (value) => parentPort!.postMessage({ value } satisfies StoreOutcome),
    (error: unknown) => parentPort!.postMessage(outcomeOf(error)),
  );
});
