/** A library that makes calls of a process fail: see test/fixtures/failing-io.c. Linux with a C compiler only. */

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const source = join(import.meta.dirname, "../../fixtures/failing-io.c");
const library = join(tmpdir(), `fermata-failing-io-${process.pid}.so`);

export const canFail = process.platform === "linux" && spawnSync("cc", ["--version"]).status === 0;

export interface Faults {
  /** Files whose path contains it. */
  path?: string;
  /** Each so manieth call. */
  every?: number;
  /** Default: EIO. 28: the disk is full. */
  errno?: number;
  delayMs?: number;
  /** Opening a file for writing is one of the calls. */
  opens?: boolean;
  /** No thread starts. */
  threads?: boolean;
  /** Only once this file is there. */
  from?: string;
  /** Grows by a byte with each injection. */
  count?: string;
  /** A file with the seconds that the clock is ahead. */
  clock?: string;
}

/** The environment of a process with these faults. */
export function failing(faults: Faults): NodeJS.ProcessEnv {
  if (!existsSync(library))
    execFileSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]);
  const names = {
    path: "PATH",
    every: "EVERY",
    errno: "ERRNO",
    delayMs: "DELAY_MS",
    opens: "OPENS",
    threads: "THREADS",
  } as const;
  const more = { from: "FROM", count: "COUNT", clock: "CLOCK" } as const;
  const environment: NodeJS.ProcessEnv = { LD_PRELOAD: library };
  for (const [key, name] of Object.entries({ ...names, ...more })) {
    const value = faults[key as keyof Faults];
    if (value !== undefined) environment[`FAIL_${name}`] = String(value);
  }
  return environment;
}

export const injectedBy = (count: string): number => (existsSync(count) ? statSync(count).size : 0);
