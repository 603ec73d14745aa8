import { existsSync, readFileSync } from "node:fs";
import { availableParallelism, cpus, totalmem } from "node:os";
import { llamaLock, ownLlamaSource } from "../../setup/paths.mjs";
import { capture } from "../../setup/run.mjs";
import { findCompiler } from "../../setup/toolchain.mjs";

const namedFlags = ["avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8"];

function cpuFacts() {
  const path = "/proc/cpuinfo";
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const field = (name) => new RegExp(`^${name}\\s*: (.*)$`, "m").exec(text)?.[1];
  const flags = field("flags")?.split(" ") ?? [];
  const generation = field("model")
    ? `, family ${field("cpu family")} model ${field("model")}`
    : "";
  return {
    cpu: `${cpus()[0]?.model ?? process.arch}${generation}`,
    features: namedFlags.filter((name) => flags.includes(name)),
  };
}

/** The kind of processor, whose figures stand in a folder of their own: its widest instructions. */
export function kindOfProcessor({ features }) {
  if (features.includes("amx_int8")) return "amx";
  if (features.includes("avx512f")) return "avx512";
  return features.includes("avx2") ? "avx2" : process.arch;
}

/** What a figure depends on besides the code. */
export async function describeMachine(threads) {
  const { output } = await capture(findCompiler(), ["--version"]);
  return {
    ...cpuFacts(),
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    threads,
    compiler: output.split("\n")[0],
    build: "Release, -march=native, -mno-avx512fp16, AMX fix for GCC, no OpenMP, static",
    llamaCpp: ownLlamaSource ? "LLAMA_CPP_DIR" : llamaLock.tag,
    node: process.version,
  };
}

export function machineLines(machine) {
  const features = machine.features.length > 0 ? ` (${machine.features.join(", ")})` : "";
  return [
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB${features}`,
    `llama.cpp ${machine.llamaCpp}, ${machine.compiler}; ${machine.build}`,
    `Node.js ${machine.node}; ${machine.threads} threads for every program`,
  ];
}
