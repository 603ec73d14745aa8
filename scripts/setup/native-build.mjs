import { existsSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { findDeviceTools } from "./device-tools.mjs";
import { nativeKey, toolchainKey } from "./native-inputs.mjs";
import { addonPath, buildDir, llamaSource, root } from "./paths.mjs";
import { say, timed } from "./report.mjs";
import { runOrFail } from "./run.mjs";
import { findSharedLlama, shareLlama } from "./shared-llama.mjs";
import { readStamp, writeStamp } from "./stamp.mjs";
import { cargoOption, checkToolchain, remarkOnCargo } from "./toolchain.mjs";

const nativeStamp = join(buildDir, "fermata-native-stamp");
const toolchainStamp = join(buildDir, "fermata-toolchain-stamp");

async function configure(options) {
  const key = toolchainKey();
  const before = readStamp(toolchainStamp);
  if (before !== undefined && before !== key) rmSync(buildDir, { recursive: true, force: true });
  writeStamp(toolchainStamp, key);
  const cmakeJs = join(root, "node_modules/cmake-js/bin/cmake-js");
  // Never empty: cmake-js drops an option without a value, and CMake would keep the last one.
  const tools = await findDeviceTools(options);
  const prebuilt = findSharedLlama(options) || "OFF";
  await runOrFail(
    "Configuring the native build",
    process.execPath,
    [
      cmakeJs,
      "configure",
      `--CDFERMATA_BACKEND=${options.backend}`,
      `--CDFERMATA_PORTABLE=${options.portable ? "ON" : "OFF"}`,
      `--CDFERMATA_LLAMA_PREBUILT=${prebuilt}`,
      `--CDLLAMA_CPP_DIR=${llamaSource}`,
      cargoOption(),
      ...tools,
    ],
    { cwd: root },
  );
}

/** Passes on a compiler's progress: each tenth of the way is one line. */
function progressLine() {
  let shown = 0;
  return (line) => {
    const ninja = /^\[(\d+)\/(\d+)\]/.exec(line);
    const make = /^\[ *(\d+)%\]/.exec(line);
    if (!ninja && !make) return false;
    const percent = ninja ? (100 * Number(ninja[1])) / Number(ninja[2]) : Number(make[1]);
    const tenth = Math.floor(percent / 10);
    if (tenth > shown && tenth < 10) say(`  ${tenth * 10}% compiled`);
    shown = Math.max(shown, tenth);
    return true;
  };
}

/** Builds `target` (all, if none is given) in a build tree that is configured. */
export async function compile(what, directory, target) {
  const jobs = process.env.CMAKE_BUILD_PARALLEL_LEVEL ?? String(availableParallelism());
  const args = ["--build", directory, "--parallel", jobs, ...(target ? ["--target", target] : [])];
  const output = await runOrFail(what, "cmake", args, { cwd: root, onLine: progressLine() });
  const warnings = output.split("\n").filter((line) => /\/native\/\S+ warning:/.test(line));
  for (const warning of new Set(warnings)) say(`  ${warning}`);
}

async function build(options) {
  await configure(options);
  await compile("Compiling the native addon", buildDir);
  // Loading it here puts a missing symbol beside the build that caused it.
  await runOrFail("Loading the native addon", process.execPath, [
    "-e",
    `require(${JSON.stringify(addonPath)})`,
  ]);
}

export function nativeIsCurrent(options) {
  return existsSync(addonPath) && readStamp(nativeStamp) === nativeKey(options);
}

/** Builds llama.cpp and the addon; the first time takes minutes. */
export async function setUpNative(options) {
  if (nativeIsCurrent(options)) return;
  await checkToolchain();
  await remarkOnCargo();
  const key = nativeKey(options);
  const first = !findSharedLlama(options) && !existsSync(addonPath);
  const title = `Building the native addon (${options.backend}${first ? ", some minutes the first time" : ""})`;
  await timed(title, () => build(options));
  shareLlama(options);
  writeStamp(nativeStamp, key);
}
