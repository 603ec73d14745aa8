import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { compile } from "../../setup/native-build.mjs";
import { llamaKey } from "../../setup/native-inputs.mjs";
import { cacheDir, llamaSource, ownLlamaSource, root } from "../../setup/paths.mjs";
import { timed } from "../../setup/report.mjs";
import { runOrFail } from "../../setup/run.mjs";
import { hashOf, readStamp, writeStamp } from "../../setup/stamp.mjs";
import { checkToolchain, findProgram } from "../../setup/toolchain.mjs";

const sources = join(root, "scripts/bench/peers");
const directory = join(cacheDir, "bench", "llama-build");
const stampPath = join(directory, "fermata-stamp");

export const peers = {
  server: join(directory, "bin", "llama-server"),
  bench: join(directory, "bin", "llama-bench"),
  schemaToGbnf: join(directory, "bin", "schema-to-gbnf"),
  batchedBench: join(directory, "bin", "llama-batched-bench"),
};

async function build() {
  rmSync(stampPath, { force: true });
  // CMake refuses a cache made by another clone of a shared cache folder; what is compiled stays good.
  rmSync(join(directory, "CMakeCache.txt"), { force: true });
  const generator = findProgram("ninja") ? ["-G", "Ninja"] : [];
  await runOrFail("Configuring llama.cpp's server and benches", "cmake", [
    "-S",
    sources,
    "-B",
    directory,
    ...generator,
    `-DLLAMA_CPP_DIR=${llamaSource}`,
    `-DFERMATA_NATIVE_DIR=${join(root, "native")}`,
  ]);
  await compile("Compiling llama.cpp's server and benches", directory, "peers");
}

/** Builds the programs that Fermata is measured against; the first time takes minutes. */
export async function buildPeers() {
  const recipe = hashOf([join(sources, "CMakeLists.txt"), join(sources, "schema-to-gbnf.cpp")]);
  const key = `${llamaKey({ backend: "cpu", portable: false })} ${recipe}`;
  // A source of the user's own may change under us; then the build tool decides.
  const current =
    readStamp(stampPath) === key && Object.values(peers).every((it) => existsSync(it));
  if (current && !ownLlamaSource) return;
  await checkToolchain();
  await timed("Building llama.cpp's server and benches (7 minutes on two cores)", build);
  writeStamp(stampPath, key);
}
