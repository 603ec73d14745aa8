import { cpus } from "node:os";

const watchMs = 1000;
/** Below this, what is measured says as much about the other programs as about the engines. */
const quiet = 0.9;

function times() {
  const all = cpus().map((cpu) => cpu.times);
  const idle = all.reduce((sum, it) => sum + it.idle, 0);
  const total = all.reduce((sum, it) => sum + Object.values(it).reduce((a, b) => a + b, 0), 0);
  return { idle, total };
}

/** The share of this machine's cores that nothing uses just now. */
async function idleShare() {
  const before = times();
  await new Promise((resolve) => setTimeout(resolve, watchMs));
  const after = times();
  return (after.idle - before.idle) / (after.total - before.total);
}

/** Runs `action`; the result says whether the machine was busy with other things around it. */
export async function watchingIdle(action) {
  const before = await idleShare();
  const rows = await action();
  const idle = Math.min(before, await idleShare());
  return { rows, busy: idle < quiet };
}
