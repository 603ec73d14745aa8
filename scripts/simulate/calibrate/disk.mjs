import { closeSync, fsyncSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const pieceBytes = 8 * 2 ** 20;
const pieces = 32;

/** Writes and reads a file as large as sequences are. What was just read comes from the page cache: a disk is slower. */
export async function measureDisk() {
  const folder = mkdtempSync(join(tmpdir(), "fermata-disk-"));
  const file = join(folder, "cells");
  const piece = Buffer.alloc(pieceBytes, 7);
  const during = (flags, each) => {
    const handle = openSync(file, flags);
    const start = performance.now();
    for (let index = 0; index < pieces; index++) each(handle);
    if (flags === "w") fsyncSync(handle);
    closeSync(handle);
    return (pieces * pieceBytes) / (performance.now() - start);
  };
  const writeBytesPerMs = during("w", (handle) => writeSync(handle, piece));
  const readBytesPerMs = during("r", (handle) => readSync(handle, piece));
  rmSync(folder, { recursive: true });
  return { readBytesPerMs, writeBytesPerMs, latencyMs: 0.1 };
}
