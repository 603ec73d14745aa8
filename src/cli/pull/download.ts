/**
 * One file, from the hub to its place. It is written beside its place, continued after cuts, and gets
 * its name only when its checksum is right.
 *
 *   part -> (cut) -> part -> … -> whole -> checked -> renamed
 */

import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FermataError } from "../../errors.ts";
import { bytesText } from "../progress.ts";
import type { CachedFile } from "./cache-folder.ts";
import { type Hub, type HubFile, isUnreachable } from "./hub.ts";

interface DownloadOptions {
  signal: AbortSignal;
  /** Bytes that are here now, those of earlier attempts included. */
  onBytes(bytes: number): void;
  /** The connection was cut; it goes on in `milliseconds`. */
  onCut(reason: string, milliseconds: number): void;
  /** Of the first wait after a cut; it doubles. Default 1000. */
  firstWaitMs?: number | undefined;
}

/** Cuts in a row without a byte in between. */
const mostCuts = 6;
/** A connection that is silent for so long is cut. */
const silenceMs = 60_000;
const gitHeader = (size: number): string => `blob ${size}\0`;

/** A cut that another attempt may mend. */
class Cut {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

/** @throws FermataError hub_… | checksum_mismatch | disk_full, or the reason of `signal` */
export async function download(
  hub: Hub,
  file: HubFile,
  target: CachedFile,
  options: DownloadOptions,
): Promise<void> {
  const partPath = target.partPath(file.checksum);
  await mkdir(dirname(partPath), { recursive: true });
  await onDisk(partPath, () => fetchAll(hub, file, partPath, options));
  const actual = await digest(partPath, file);
  if (actual !== file.checksum.value) {
    await rm(partPath, { force: true });
    throw new FermataError(
      "checksum_mismatch",
      `${file.path} has the wrong checksum and was deleted: ${actual} instead of ${file.checksum.value}. Try again. If it fails again, the file on the hub or a proxy is broken.`,
      { param: "hf" },
    );
  }
  await rename(partPath, target.path);
  target.remember(file.checksum, await hub.commit());
}

/** Until the part is as long as the file. */
async function fetchAll(
  hub: Hub,
  file: HubFile,
  partPath: string,
  { signal, onBytes, onCut, firstWaitMs = 1000 }: DownloadOptions,
): Promise<void> {
  const handle = await open(partPath, "a+");
  try {
    let size = (await handle.stat()).size;
    if (size > file.size) {
      await handle.truncate(0);
      size = 0;
    }
    await checkSpace(partPath, file.size - size);
    let cuts = 0;
    while (size < file.size) {
      onBytes(size);
      const before = size;
      const outcome = await fetchSome(hub, file, handle, size, { signal, onBytes });
      size = (await handle.stat()).size;
      if (outcome === null) continue;
      cuts = size > before ? 1 : cuts + 1;
      if (cuts >= mostCuts) {
        throw new FermataError(
          "hub_unreachable",
          `${file.path} was cut ${cuts} times in a row (${outcome.reason}). ${bytesText(size)} of ${bytesText(file.size)} are kept. Run the same command again to continue.`,
          { param: "hf" },
        );
      }
      const waitMs = firstWaitMs * 2 ** (cuts - 1);
      onCut(outcome.reason, waitMs);
      await sleep(waitMs, undefined, { signal });
    }
    onBytes(size);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** One connection. Null: it ended as it should. @throws what another attempt cannot mend */
async function fetchSome(
  hub: Hub,
  file: HubFile,
  handle: FileHandle,
  start: number,
  { signal, onBytes }: Pick<DownloadOptions, "signal" | "onBytes">,
): Promise<Cut | null> {
  const silence = new AbortController();
  const connection = AbortSignal.any([signal, silence.signal]);
  let response: Response;
  try {
    response = await hub.open(file.path, start, connection);
  } catch (error) {
    signal.throwIfAborted();
    if (!isUnreachable(error)) throw error;
    return new Cut(error.message.replace(/\.$/, ""));
  }
  let position = await startOf(response, start, handle);
  if (response.body === null || position === null) return new Cut("it sent another range");
  const timer = setTimeout(() => silence.abort(), silenceMs);
  try {
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      timer.refresh();
      position += chunk.length;
      if (position > file.size) {
        await handle.truncate(0);
        return new Cut("it sent more than the file has");
      }
      await write(handle, chunk);
      onBytes(position);
    }
  } catch (error) {
    signal.throwIfAborted();
    if (isDiskError(error)) throw error;
    return new Cut(silence.signal.aborted ? "the connection was silent" : "the connection was cut");
  } finally {
    clearTimeout(timer);
  }
  return position < file.size ? new Cut("the connection ended early") : null;
}

/** Where the bytes of `response` belong; the part is cut to that. Null: nowhere. */
async function startOf(
  response: Response,
  start: number,
  handle: FileHandle,
): Promise<number | null> {
  if (response.status === 206) {
    const range = /^bytes (\d+)-/.exec(response.headers.get("content-range") ?? "");
    if (Number(range?.[1]) === start) return start;
  } else if (response.status === 200) {
    // It knows no ranges: all over again.
    await handle.truncate(0);
    return 0;
  }
  await response.body?.cancel();
  await handle.truncate(0);
  return null;
}

async function write(handle: FileHandle, chunk: Uint8Array): Promise<void> {
  let written = 0;
  while (written < chunk.length) {
    const { bytesWritten } = await handle.write(chunk, written);
    written += bytesWritten;
  }
}

/** In hexadecimal; the kind of `file`'s. Reads it all: what lies on the disk is what counts. */
async function digest(path: string, { checksum, size }: HubFile): Promise<string> {
  const hash: Hash = createHash(checksum.kind === "git" ? "sha1" : "sha256");
  if (checksum.kind === "git") hash.update(gitHeader(size));
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 }))
    hash.update(chunk as Buffer);
  return hash.digest("hex");
}

/** Before hours are spent on what cannot end well. */
async function checkSpace(path: string, needed: number): Promise<void> {
  const { bavail, bsize } = await statfs(dirname(path));
  const free = bavail * bsize;
  if (free >= needed) return;
  throw new FermataError(
    "disk_full",
    `The download needs ${bytesText(needed)}, and ${dirname(path)} has ${bytesText(free)} free. Free some space, or choose another folder with --models-dir.`,
    { param: "models-dir" },
  );
}

async function onDisk(path: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isDiskError(error)) throw error;
    const { size } = await stat(path).catch(() => ({ size: 0 }));
    throw new FermataError(
      "disk_full",
      `The disk is full: ${dirname(path)}. ${bytesText(size)} are kept. Free some space and run the same command again, or choose another folder with --models-dir.`,
      { param: "models-dir", cause: error },
    );
  }
}

function isDiskError(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT"].includes((error as NodeJS.ErrnoException)?.code ?? "");
}
