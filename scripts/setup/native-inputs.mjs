import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { llamaLock, ownLlamaSource, root } from "./paths.mjs";
import { filesUnder, hashOf } from "./stamp.mjs";
import { findCargo, findCompiler, findProgram } from "./toolchain.mjs";

// By path, size and time, because asking the compiler would start a process on every start.
function fileIdentity(path) {
  if (!path) return "none";
  const target = realpathSync(path);
  const { size, mtimeMs } = statSync(target);
  return `${target} ${size} ${mtimeMs}`;
}

/** The instruction sets that -march=native would use. */
function cpuIdentity() {
  if (!existsSync("/proc/cpuinfo")) return cpus()[0]?.model ?? process.arch;
  const text = readFileSync("/proc/cpuinfo", "utf8");
  return /^(flags|Features)\s*:.*$/m.exec(text)?.[0] ?? process.arch;
}

/** Changes when a build tree that exists cannot be used any more. */
export function toolchainKey() {
  return hashOf([], [root, fileIdentity(findCompiler()), findProgram("ninja") ? "ninja" : "make"]);
}

/** Names one way of compiling llama.cpp, wherever the clone is. */
export function llamaKey({ backend, portable }) {
  const flags = [process.env.CC, process.env.CFLAGS, process.env.CXXFLAGS];
  const recipe = [
    join(root, "native/llama-cpp.cmake"),
    ...["compat", "kernels"].flatMap((folder) => filesUnder(join(root, "native", folder))),
  ];
  if (backend !== "cpu") {
    recipe.push(join(root, "native/devices.cmake"), ...filesUnder(join(root, "native/devices")));
    flags.push(process.env.CUDAARCHS);
  }
  const machine = portable ? process.arch : cpuIdentity();
  const compiler = fileIdentity(findCompiler());
  return hashOf(recipe, [llamaLock, backend, portable, flags, machine, compiler]).slice(0, 16);
}

/** Changes when the addon must be built again. */
export function nativeKey(options) {
  const files = [join(root, "CMakeLists.txt"), ...filesUnder(join(root, "native"))];
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
  const headers = ["node-addon-api", "node-api-headers"].map(
    (name) => lock[`node_modules/${name}`].version,
  );
  const llama = ownLlamaSource ?? llamaKey(options);
  const { fetchTools: _, ...build } = options;
  return hashOf(files, [toolchainKey(), llama, build, headers, fileIdentity(findCargo())]);
}
