/** One process at a time, by a file that says which. What a dead process left is taken over. */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const pollMs = 300;

interface Holder {
  pid: number;
  host: string;
}

/** Waits its turn; `onWait` is told once that it must. Resolves to what gives the lock back. */
export async function acquireLock(
  path: string,
  signal: AbortSignal,
  onWait: (holder: string) => void,
): Promise<() => void> {
  mkdirSync(dirname(path), { recursive: true });
  let waits = false;
  for (;;) {
    signal.throwIfAborted();
    if (take(path)) return () => rmSync(path, { force: true });
    const holder = readHolder(path);
    if (holder === null) {
      // Just given back, or not written yet.
      await sleep(pollMs, undefined, { signal });
      if (readHolder(path) === null) rmSync(path, { force: true });
      continue;
    }
    if (isDead(holder)) {
      rmSync(path, { force: true });
      continue;
    }
    if (!waits) onWait(`process ${holder.pid} on ${holder.host}; ${path}`);
    waits = true;
    await sleep(pollMs, undefined, { signal });
  }
}

function take(path: string): boolean {
  const holder: Holder = { pid: process.pid, host: hostname() };
  try {
    writeFileSync(path, JSON.stringify(holder), { flag: "wx" });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function readHolder(path: string): Holder | null {
  try {
    const holder = JSON.parse(readFileSync(path, "utf8")) as Partial<Holder>;
    return typeof holder.pid === "number" && typeof holder.host === "string"
      ? (holder as Holder)
      : null;
  } catch {
    return null;
  }
}

/** A process of another machine is taken to live. */
function isDead({ pid, host }: Holder): boolean {
  if (host !== hostname()) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}
