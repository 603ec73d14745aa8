/** Whether the server answers and accepts this page. */

import { openSession } from "../api/endpoints.ts";
import { ApiError, unreachable } from "../api/request.ts";
import { Store } from "./store.ts";

/** `locked`: a key is needed. `offline`: the server does not answer. */
export type SessionState = "open" | "locked" | "offline";

export const session = new Store<SessionState>("open");

/** Number of reconnects. After each one, missed data is read again. */
export const returns = new Store(0);

/** When the last key was accepted, by `performance.now()`. */
let unlockedAt = -Infinity;

/** Sees every failed call first. Returns true if it handled the failure. */
export function noteFailure(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  if (error.status === 401) {
    // What was sent before the key was accepted is read again after it.
    if (error.sentAt >= unlockedAt) session.set("locked");
    return true;
  }
  if (error.code === unreachable) {
    session.set("offline");
    return true;
  }
  return false;
}

export function noteAnswer(): void {
  if (session.get() !== "offline") return;
  session.set("open");
  returns.update((count) => count + 1);
}

/** @throws ApiError if the key is wrong */
export async function unlock(key: string): Promise<void> {
  await openSession(key);
  unlockedAt = performance.now();
  session.set("open");
  returns.update((count) => count + 1);
}

/**
 * A link may carry a key behind `#key=`, where no server and no log sees it: the banner of a server that
 * made its own prints one. `forget` takes it out of the address.
 */
export async function unlockByLink(hash: string, forget: () => void): Promise<void> {
  const key = /^#key=(.+)$/.exec(hash)?.[1];
  if (key === undefined) return;
  forget();
  try {
    await unlock(decodeURIComponent(key));
  } catch (error) {
    noteFailure(error);
  }
}
