#!/usr/bin/env node
// npm run test:sanitize-addon: the addon with llama.cpp in it under ASan and UBSan, with `--threads` under TSan: the
// native tests that load models, then the lanes `model` and `integrity` in a Node that the sanitizer's runtime is
// loaded into. About 20 minutes (TSan: an hour), most of them for compiling; not part of `npm test`.
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setUp } from "../setup.mjs";
import { compile } from "../setup/native-build.mjs";
import { takeSetupOptions } from "../setup/options.mjs";
import { buildDir, llamaSource, root } from "../setup/paths.mjs";
import { exitOnSetupError, say, SetupError } from "../setup/report.mjs";
import { capture, runOrFail } from "../setup/run.mjs";
import { ctest } from "./native.mjs";

/** What differs from sanitizer to sanitizer. `options` name their files by a prefix. */
const kinds = {
  memory: {
    directory: "sanitize-addon",
    sanitize: "address,undefined",
    // Alignment: ggml reads its blocks where they lie. vptr: Node is built without RTTI.
    flags: ["-fno-sanitize=vptr,alignment"],
    libraries: ["libasan.so", "libubsan.so"],
    // Node frees little of what it has at its end.
    options: (log) => ({
      ASAN_OPTIONS: `detect_leaks=0:${log("address")}`,
      UBSAN_OPTIONS: `print_stacktrace=1:${log("undefined")}`,
    }),
    called: /__asan_report/,
    reports: (text) => [text],
  },
  threads: {
    directory: "sanitize-addon-threads",
    sanitize: "thread",
    flags: [],
    libraries: ["libtsan.so"],
    options: (log) => ({ TSAN_OPTIONS: `exitcode=0:${log("thread")}` }),
    called: /__tsan_func_entry/,
    reports: ownRaces,
  },
};

/** The addon and the native tests, as a frame names them. */
const ours = /\((fermata\.node|(core|guidance|llama|runtime|test)_\w+)\+/;

/**
 * Node is not built with TSan: what it does behind its own locks and atomics looks unordered. A race counts where one
 * of the two accesses was made by our code, itself or by a function of the C library.
 */
function ownRaces(text) {
  return text.split("==================").filter((report) => {
    const accesses = report
      .split(/\n\s*\n/)
      .filter((part) => !/^\s*(Location|Thread|Mutex) /.test(part));
    return (
      report.includes("WARNING: ThreadSanitizer") &&
      accesses.some((part) => ours.test(madeBy(part)))
    );
  });
}

/** The first frame of a stack outside of the sanitizer and the languages' libraries. */
function madeBy(stack) {
  const frames = stack.split("\n").filter((line) => /^\s*#\d+ /.test(line));
  return frames.find((frame) => !/\(lib(tsan|stdc\+\+|c)\.so/.test(frame)) ?? "";
}

async function runtimeOf(library) {
  const { output } = await capture(process.env.CC ?? "cc", [`-print-file-name=${library}`]);
  return output.trim();
}

/** What the sanitizers found goes into files: a test's process may end without a word. */
async function environment({ libraries, options }, directory, reports) {
  return {
    FERMATA_ADDON: join(directory, "Release/fermata.node"),
    LD_PRELOAD: (await Promise.all(libraries.map(runtimeOf))).join(":"),
    // Where gdb is installed, ggml starts it for a process that aborts, and under ASan it takes minutes.
    GGML_NO_BACKTRACE: "1",
    ...options((name) => `log_path=${join(reports, name)}`),
  };
}

/** Flags that a tool in between has dropped would leave the sanitizers with nothing to see. */
async function checkInstrumented({ called }, directory) {
  const parts = [
    "native/libfermata_core.a",
    "native/libfermata_llama.a",
    "native/CMakeFiles/fermata.dir/binding/engine_host.cpp.o",
  ];
  for (const part of parts) {
    const { output } = await capture("nm", ["--undefined-only", join(directory, part)]);
    if (!called.test(output)) throw new SetupError(`${part} was compiled without the sanitizer.`);
  }
}

async function run() {
  const { options, rest } = takeSetupOptions(process.argv.slice(2));
  const unknown = rest.filter((option) => option !== "--threads");
  if (unknown.length > 0)
    throw new SetupError(`Unknown option "${unknown[0]}". The only one is --threads.`);
  const kind = kinds[rest.length > 0 ? "threads" : "memory"];
  await setUp(options);
  const directory = join(buildDir, kind.directory);
  const reports = join(directory, "reports");
  const sanitize = `-fsanitize=${kind.sanitize}`;
  const flags = [sanitize, ...kind.flags, "-fno-omit-frame-pointer", "-g1"].join(" ");
  await runOrFail(
    "Configuring the sanitized addon",
    process.execPath,
    [
      join(root, "node_modules/cmake-js/bin/cmake-js"),
      "configure",
      "-O",
      directory,
      `--CDLLAMA_CPP_DIR=${llamaSource}`,
      "--CDFERMATA_ASSERTS=ON",
      // cmake-js gives CMake C++ flags of its own; these come after them.
      "--",
      `-DCMAKE_C_FLAGS=${flags}`,
      `-DCMAKE_CXX_FLAGS=${flags}`,
      "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG",
      "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
    ],
    { cwd: root },
  );
  await compile("Compiling the sanitized addon and tests", directory, "native_tests");
  await compile("Linking the sanitized addon", directory, "fermata");
  await checkInstrumented(kind, directory);
  rmSync(reports, { recursive: true, force: true });
  mkdirSync(reports, { recursive: true });
  const env = await environment(kind, directory, reports);
  const onLine = (line) => (process.stdout.write(`${line}\n`), true);
  const { LD_PRELOAD: _, ...plain } = env;
  const { ok } = await ctest(directory, { seconds: 3600, env: plain, onLine });
  const args = ["run", "--project=model", "--project=integrity", "--no-file-parallelism"];
  const { code } = await capture(
    process.execPath,
    [join(root, "node_modules/vitest/vitest.mjs"), ...args, "--testTimeout=300000"],
    { cwd: root, env, onLine },
  );
  if (!ok || code !== 0) process.exitCode = 1;
  const found = readdirSync(reports).flatMap((name) =>
    kind.reports(readFileSync(join(reports, name), "utf8")),
  );
  for (const report of found) process.stdout.write(report);
  if (found.length > 0) process.exitCode = 1;
  say(`sanitizers: ${found.length === 0 ? "nothing found" : `${found.length} reports`}`);
}

try {
  await run();
} catch (error) {
  exitOnSetupError(error);
}
