// npm packages that only some tests need, in folders with a lock of their own.
import { join } from "node:path";
import { timed } from "./report.mjs";
import { npmCommand, runOrFail } from "./run.mjs";
import { hashOf, readStamp, writeStamp } from "./stamp.mjs";

/** Installs what the folder's lock names, unless it is there. `title` is shown meanwhile. */
export async function installLocked(folder, title) {
  const stampPath = join(folder, "node_modules", ".fermata-stamp");
  const wanted = hashOf([join(folder, "package-lock.json")]);
  if (readStamp(stampPath) === wanted) return;
  await timed(title, async () => {
    const [program, args] = npmCommand(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    await runOrFail("npm ci", program, args, { cwd: folder });
  });
  writeStamp(stampPath, wanted);
}
