/** How long a process may take to close, and how it leaves. */

import { isatty } from "node:tty";
import type { ServeConfig } from "./options/serve-options.ts";

/** What engines may take to write their caches to files when they close, in milliseconds: more than `native/binding/engine_host.cpp` lets them. */
export function savingMs({
  cacheDisk,
  cacheRemote,
}: Pick<ServeConfig, "cacheDisk" | "cacheRemote">): number {
  return cacheDisk > 0 || cacheRemote !== undefined ? 12_000 : 0;
}

/** What the service may take to close, in milliseconds: the notice for proxies, the drain, the files of its cache. */
export function closingMs(
  config: Pick<ServeConfig, "cacheDisk" | "cacheRemote" | "processTimeout">,
): number {
  const { notice, drain } = config.processTimeout;
  return (notice + drain) * 1000 + savingMs(config);
}

/**
 * Ends this process. Where its terminal was closed, Node would abort at its end, because it cannot reset the terminal:
 * there the process ends by the signal that told of it.
 */
export function leave(exitCode: number): void {
  const isTerminalGone =
    (process.stdout.isTTY && !isatty(1)) || (process.stderr.isTTY && !isatty(2));
  if (!isTerminalGone) process.exit(exitCode);
  process.removeAllListeners("SIGHUP");
  process.kill(process.pid, "SIGHUP");
}
