import { readFileSync } from "node:fs";

function readOrEmpty(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** The largest resident set so far, in MiB, of a process and its children, summed. NaN where there is no /proc. */
export function peakMemory(pid) {
  const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readOrEmpty(`/proc/${pid}/status`))?.[1];
  const children = readOrEmpty(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean);
  return children.reduce((sum, child) => sum + peakMemory(child), Number(peak ?? NaN) / 1024);
}
