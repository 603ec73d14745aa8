import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { buildDir, root } from "../setup/paths.mjs";
import { capture } from "../setup/run.mjs";

/**
 * Runs one vitest lane; resolves with { ok, output, passed, failed, skipped }. `args` are vitest's.
 * `live`: its output is shown as it comes, and not kept.
 */
export async function runLane(lane, { args = [], live = false } = {}) {
  const report = join(buildDir, `vitest-${lane}.json`);
  rmSync(report, { force: true });
  const { code, output } = await capture(
    process.execPath,
    [
      join(root, "node_modules/vitest/vitest.mjs"),
      "run",
      "--project",
      // With the tests that a lane has once more for another store.
      `${lane}*`,
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${report}`,
      ...args,
    ],
    { cwd: root, onLine: live ? showLine : undefined },
  );
  const ok = code === 0;
  let counts = { numPassedTests: 0, numFailedTests: ok ? 0 : 1, numPendingTests: 0 };
  try {
    counts = JSON.parse(readFileSync(report, "utf8"));
  } catch {
    // Vitest ended before it could report; its output says why.
  }
  const failed = ok ? counts.numFailedTests : Math.max(1, counts.numFailedTests);
  return { ok, output, passed: counts.numPassedTests, failed, skipped: counts.numPendingTests };
}

function showLine(line) {
  process.stdout.write(`${line}\n`);
  return true;
}
