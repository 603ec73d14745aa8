import { readFileSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";

/** Cores that this process may use, two hardware threads counted as one where the system tells. */
export function physicalCores(): number {
  const usable = availableParallelism();
  try {
    const folder = "/sys/devices/system/cpu";
    const names = readdirSync(folder).filter((name) => /^cpu\d+$/.test(name));
    const cores = new Set(
      names.map((name) => readFileSync(`${folder}/${name}/topology/thread_siblings_list`, "utf8")),
    );
    return Math.min(Math.max(cores.size, 1), usable);
  } catch {
    return usable;
  }
}
