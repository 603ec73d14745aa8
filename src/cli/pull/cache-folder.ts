/**
 * Where pulled files lie:
 *
 *   OWNER/NAME/REVISION/path/model.gguf        whole, and its checksum was right
 *   OWNER/NAME/REVISION/path/model.gguf.json   its checksum, and the commit that it is of
 *   OWNER/NAME/REVISION/path/model.gguf.<checksum>.part   the beginning of one
 *   OWNER/NAME/REVISION/path/model.gguf.lock   who pulls it now
 */

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { beganAt, isRunning, place } from "../../store/process-place.ts";
import type { Checksum, HubFile } from "./hub.ts";

/** `revision` may have slashes, as refs/pr/1 has, and be any text: the result is one folder's name. */
export function revisionFolder(root: string, repository: string, revision: string): string {
  const name = revision.replaceAll(/[^\w.-]/g, "+").replace(/^\.+$/, "+");
  return join(root, ...repository.split("/"), name);
}

/** The files of one path; `folder` is a revision's. */
export class CachedFile {
  /** Stands only when it is whole. */
  readonly path: string;
  readonly lockPath: string;
  readonly #notePath: string;

  constructor(folder: string, path: string) {
    this.path = join(folder, ...path.split("/"));
    this.lockPath = `${this.path}.lock`;
    this.#notePath = `${this.path}.json`;
  }

  /** Another content has another name: a part is never continued with something else. */
  partPath({ value }: Checksum): string {
    return `${this.path}.${value.slice(0, 16)}.part`;
  }

  /** Whether what lies here is what the hub has. */
  holds({ size, checksum }: HubFile): boolean {
    const note = this.#note();
    const isSame = note?.kind === checksum.kind && note.value === checksum.value;
    return isSame && existsSync(this.path) && statSync(this.path).size === size;
  }

  /** After the content is in its place. */
  remember(checksum: Checksum, commit: string): void {
    writeFileSync(this.#notePath, `${JSON.stringify({ ...checksum, commit })}\n`);
  }

  #note(): Checksum | null {
    try {
      return JSON.parse(readFileSync(this.#notePath, "utf8")) as Checksum;
    } catch {
      return null;
    }
  }
}

/** Paths of the whole files here, as the repository has them. Empty if there are none. */
export function cachedPaths(folder: string): string[] {
  let entries: string[];
  try {
    entries = readdirSync(folder, { recursive: true }) as string[];
  } catch {
    return [];
  }
  return entries
    .filter((entry) => /\.gguf$/i.test(entry) && existsSync(join(folder, `${entry}.json`)))
    .map((entry) => relative(folder, join(folder, entry)).split(sep).join("/"));
}

const pollMs = 300;

interface Holder {
  pid: number;
  host: string;
  /** Where its number counts, and when it began: the number alone may be another process's by now. */
  place?: string;
  began?: string | null;
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
  const { pid } = process;
  const holder: Holder = { pid, host: hostname(), place, began: beganAt(pid) };
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
function isDead({ pid, host, place: its, began = null }: Holder): boolean {
  if (host !== hostname()) return false;
  if (its === place) return began === null ? !isRunning(pid) : beganAt(pid) !== began;
  // In a container every process may have this one's number.
  return pid === process.pid || !isRunning(pid);
}
