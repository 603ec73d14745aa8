#!/usr/bin/env node
// npm run test:sanitize-addon: the addon with llama.cpp in it under ASan and UBSan: the native tests that load models,
// then the lanes `model` and `integrity` in a Node that the sanitizer's runtime is loaded into. About 20 minutes, most
// of them for compiling; not part of `npm test`.
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setUp } from "../setup.mjs";
import { compile } from "../setup/native-build.mjs";
import { takeSetupOptions } from "../setup/options.mjs";
import { buildDir, llamaSource, root } from "../setup/paths.mjs";
import { exitOnSetupError, say } from "../setup/report.mjs";
import { capture, runOrFail } from "../setup/run.mjs";

const directory = join(buildDir, "sanitize-addon");
const reports = join(directory, "reports");
// Alignment: ggml reads its blocks where they lie. vptr: Node is built without RTTI.
const flags = [
  "-fsanitize=address,undefined",
  "-fno-sanitize=vptr,alignment",
  "-fno-omit-frame-pointer",
  "-g1",
  "-O1",
].join(" ");

async function runtimeOf(library) {
  const { output } = await capture(process.env.CC ?? "cc", [`-print-file-name=${library}`]);
  return output.trim();
}

/** What the sanitizers found goes into files: a test's process may end without a word. */
async function environment() {
  const report = (name) => `log_path=${join(reports, name)}`;
  return {
    FERMATA_ADDON: join(directory, "Release/fermata.node"),
    LD_PRELOAD: [await runtimeOf("libasan.so"), await runtimeOf("libubsan.so")].join(":"),
    // Where gdb is installed, ggml starts it for a process that aborts, and under ASan it takes minutes.
    GGML_NO_BACKTRACE: "1",
    // Node frees little of what it has at its end.
    ASAN_OPTIONS: `detect_leaks=0:${report("address")}`,
    UBSAN_OPTIONS: `print_stacktrace=1:${report("undefined")}`,
  };
}

async function run() {
  const { options } = takeSetupOptions(process.argv.slice(2));
  await setUp(options);
  await runOrFail(
    "Configuring the sanitized addon",
    process.execPath,
    [
      join(root, "node_modules/cmake-js/bin/cmake-js"),
      "configure",
      "-O",
      directory,
      `--CDLLAMA_CPP_DIR=${llamaSource}`,
    ],
    {
      cwd: root,
      env: { CFLAGS: flags, CXXFLAGS: flags, LDFLAGS: "-fsanitize=address,undefined" },
    },
  );
  await compile("Compiling the sanitized addon and tests", directory, "native_tests");
  await compile("Linking the sanitized addon", directory, "fermata");
  rmSync(reports, { recursive: true, force: true });
  mkdirSync(reports, { recursive: true });
  const env = await environment();
  const { LD_PRELOAD: _, ...plain } = env;
  const steps = [
    ["ctest", ["--test-dir", directory, "--output-on-failure"], plain],
    [
      process.execPath,
      [
        join(root, "node_modules/vitest/vitest.mjs"),
        "run",
        "--project=model",
        "--project=integrity",
        "--no-file-parallelism",
        "--testTimeout=300000",
      ],
      env,
    ],
  ];
  for (const [command, args, stepEnv] of steps) {
    const { code } = await capture(command, args, {
      cwd: root,
      env: stepEnv,
      onLine: (line) => (process.stdout.write(`${line}\n`), true),
    });
    if (code !== 0) process.exitCode = 1;
  }
  const found = readdirSync(reports);
  for (const name of found) process.stdout.write(readFileSync(join(reports, name), "utf8"));
  if (found.length > 0) process.exitCode = 1;
  say(`sanitizers: ${found.length === 0 ? "nothing found" : `${found.length} reports`}`);
}

try {
  await run();
} catch (error) {
  exitOnSetupError(error);
}
