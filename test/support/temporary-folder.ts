// The folder for temporary files of one run of vitest: of the tests and of the programs that they start. It is removed
// when the run ends, whatever failed; that of a run that was killed, when the next begins.
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const mark = "FERMATA_TEST_FOLDER";
const named = /^fermata-tests-(\d+)-/;
let folder: string | undefined;

export function setup(): void {
  // Of several lanes in one run, the first makes it.
  if (process.env[mark] !== undefined) return;
  for (const name of readdirSync(tmpdir())) {
    const pid = named.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) remove(join(tmpdir(), name));
  }
  folder = mkdtempSync(join(tmpdir(), `fermata-tests-${process.pid}-`));
  // Servers of other users have files in it.
  chmodSync(folder, 0o755);
  process.env[mark] = folder;
  process.env["TMPDIR"] = folder;
}

export function teardown(): void {
  if (folder !== undefined) remove(folder);
}

function remove(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // It is somebody else's.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
