import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { compile } from "../setup/native-build.mjs";
import { buildDir, root } from "../setup/paths.mjs";
import { capture, runOrFail } from "../setup/run.mjs";

/** Of one run, with what tests that ended at once would leave. */
async function withFolder(use) {
  const folder = mkdtempSync(join(tmpdir(), "fermata-native-tests-"));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** All native tests of a build tree. @param options `seconds` for each; `onLine` as `capture` has it */
export async function ctest(directory, { seconds = 300, env = {}, onLine } = {}) {
  const jobs = `--parallel=${availableParallelism()}`;
  const args = ["--output-on-failure", "--no-tests=error", `--timeout=${seconds}`, jobs];
  const { code, output } = await withFolder((folder) =>
    capture("ctest", ["--test-dir", directory, ...args], {
      cwd: root,
      env: { ...env, TMPDIR: folder },
      onLine,
    }),
  );
  const summary = /tests passed, (\d+) tests? failed out of (\d+)/.exec(output);
  const [failed, total] = summary ? [Number(summary[1]), Number(summary[2])] : [0, 0];
  const skipped = output.match(/\*\*\*Skipped/g)?.length ?? 0;
  const ok = code === 0;
  return {
    ok,
    output,
    passed: total - failed - skipped,
    failed: ok ? 0 : Math.max(1, failed),
    skipped,
  };
}

/** The native tests beside the addon. @param options `seconds` as `ctest` has it */
export async function runNativeTests({ seconds } = {}) {
  await compile("Compiling the native tests", buildDir, "native_tests");
  return ctest(buildDir, { seconds });
}

/** Core and runtime without llama.cpp, under sanitizers, in build trees of their own. */
export async function runSanitizedTests(sanitizers) {
  const directory = join(buildDir, `sanitize-${sanitizers.split(",")[0]}`);
  await runOrFail(
    "Configuring the sanitized build",
    "cmake",
    [
      "-S",
      root,
      "-B",
      directory,
      `-DFERMATA_SANITIZE=${sanitizers}`,
      "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
      // llguidance is the same for all build trees.
      `-DFERMATA_CARGO_TARGET=${join(buildDir, "cargo")}`,
    ],
    { cwd: root },
  );
  await compile("Compiling the sanitized tests", directory, "native_tests");
  return ctest(directory);
}

/** A compiler may come without its sanitizers' runtime. */
export async function hasSanitizer(name) {
  const compiler = process.env.CXX ?? "c++";
  const args = [`-fsanitize=${name}`, "-x", "c++", "-", "-o", "/dev/null"];
  const { code } = await capture("sh", [
    "-c",
    `echo 'int main() {}' | ${compiler} ${args.join(" ")}`,
  ]);
  return code === 0;
}
