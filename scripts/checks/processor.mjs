import { existsSync, readFileSync } from "node:fs";
import { cpus } from "node:os";

/** Instruction sets that choose llama.cpp's kernels, as Linux names them; ARM's behind x86's. */
const instructionSets =
  "avx avx2 fma f16c avx_vnni avx512f avx512_vnni avx512_bf16 amx_tile amx_int8 amx_bf16 " +
  "asimd asimddp i8mm bf16 sve sve2 sme";

/**
 * One line on the processor that tests run on: results differ in the last digits from one to another.
 * `cpuinfo`: the text of /proc/cpuinfo; "" where there is none.
 */
export function describeProcessor(model, count, cpuinfo) {
  const flags = new Set(/^(?:flags|Features)\s*:(.*)$/m.exec(cpuinfo)?.[1].trim().split(/\s+/));
  const known = instructionSets.split(" ").filter((name) => flags.has(name));
  const sets = known.length > 0 ? known.join(" ") : "instruction sets unknown";
  return `processor: ${model.trim()}, ${count} logical; ${sets}`;
}

export function thisProcessor() {
  const all = cpus();
  const path = "/proc/cpuinfo";
  const cpuinfo = existsSync(path) ? readFileSync(path, "utf8") : "";
  return describeProcessor(all[0]?.model ?? "unknown", all.length, cpuinfo);
}
