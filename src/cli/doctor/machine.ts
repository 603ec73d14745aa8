/** What the hardware and the system offer. Linux tells most; elsewhere much is unknown. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { availableParallelism, cpus, freemem, totalmem } from "node:os";
import { physicalCores } from "../../engine/options.ts";

export interface Machine {
  platform: string;
  node: string;
  cpu: string;
  /** Cores that this process may use, and hardware threads. */
  cores: number;
  threads: number;
  /** What the CPU has of the features that matter, as llama.cpp names them. Null: the system does not tell. */
  features: string[] | null;
  memoryBytes: number;
  /** What can be had without swapping, a container's limit included. */
  availableBytes: number;
  gpus: string[];
}

/** llama.cpp's name of a feature, and the kernel's flag for it. */
const flags: Record<string, string> = {
  SSE3: "pni",
  AVX: "avx",
  AVX2: "avx2",
  FMA: "fma",
  F16C: "f16c",
  AVX_VNNI: "avx_vnni",
  AVX512: "avx512f",
  AVX512_VNNI: "avx512_vnni",
  AVX512_BF16: "avx512_bf16",
  AMX_INT8: "amx_int8",
  NEON: "asimd",
  DOTPROD: "asimddp",
  SVE: "sve",
};

export function readMachine(): Machine {
  const meminfo = read("/proc/meminfo");
  const available = kilobytes(meminfo, "MemAvailable") ?? freemem();
  const limit = containerLimit();
  return {
    platform: `${process.platform} ${process.arch}`,
    node: process.versions.node,
    cpu: cpus()[0]?.model.trim() || "unknown",
    cores: physicalCores(),
    threads: availableParallelism(),
    features: readFeatures(),
    memoryBytes: Math.min(totalmem(), limit?.total ?? Infinity),
    availableBytes: Math.min(available, limit?.free ?? Infinity),
    gpus: readGpus(),
  };
}

function readFeatures(): string[] | null {
  const line = /^(?:flags|Features)\s*:\s*(.*)$/m.exec(read("/proc/cpuinfo"));
  if (line === null) return null;
  const has = new Set(line[1]!.split(" "));
  return Object.keys(flags).filter((name) => has.has(flags[name]!));
}

/** Of the control group, if it sets one. */
function containerLimit(): { total: number; free: number } | null {
  const total = Number(read("/sys/fs/cgroup/memory.max").trim() || Number.NaN);
  const used = Number(read("/sys/fs/cgroup/memory.current").trim() || Number.NaN);
  if (!Number.isFinite(total) || !Number.isFinite(used)) return null;
  const cache = Number(/^inactive_file (\d+)$/m.exec(read("/sys/fs/cgroup/memory.stat"))?.[1] ?? 0);
  return { total, free: Math.max(total - used + cache, 0) };
}

function readGpus(): string[] {
  const gpus: string[] = [];
  if (process.platform === "darwin" && process.arch === "arm64") gpus.push("Apple (Metal)");
  if (existsSync("/proc/driver/nvidia/gpus")) gpus.push("NVIDIA (CUDA)");
  const nodes = list("/dev/dri").filter((name) => name.startsWith("renderD"));
  if (nodes.length > 0 && gpus.length === 0) gpus.push(`${nodes.join(", ")} (Vulkan)`);
  return gpus;
}

function kilobytes(meminfo: string, name: string): number | null {
  const value = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(meminfo)?.[1];
  return value === undefined ? null : Number(value) * 1024;
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
