// The folder for temporary files of one run of vitest: of the tests and of the programs that they start. It is removed
// when the run ends, whatever failed and whatever was killed.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const mark = "FERMATA_TEST_FOLDER";
let folder: string | undefined;

export function setup(): void {
  // Of several lanes in one run, the first makes it.
  if (process.env[mark] !== undefined) return;
  folder = mkdtempSync(join(tmpdir(), "fermata-tests-"));
  // Servers of other users have files in it.
  chmodSync(folder, 0o755);
  process.env[mark] = folder;
  process.env["TMPDIR"] = folder;
}

export function teardown(): void {
  if (folder === undefined) return;
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
