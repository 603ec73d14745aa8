/** Which process a number stands for, on this machine. */

import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/**
 * Where process numbers count: the machine since it started, and the container. What stands still, or whose clock jumps, is
 * alive there all the same.
 */
export const place = [
  hostname(),
  readOr(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
  readOr(() => readlinkSync("/proc/self/ns/pid")),
].join(" ");

/** The start time in ticks since boot. Null: there is no such process, or the system does not tell. */
export function beganAt(pid: number): string | null {
  const stat = readOr(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  // The name in brackets may hold anything. The state follows it, and the start time 19 fields later.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? null : (fields[19] ?? null);
}

function readOr(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
