import { readFile } from "node:fs/promises";

/** A zombie has ended: whoever started it has only not asked yet. */
export async function isAlive(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
    const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
    return !/\) [ZX]/.test(stat);
  } catch {
    return false;
  }
}
