import { join } from "node:path";
import { root } from "./paths.mjs";
import { timed } from "./report.mjs";
import { npmCommand, runOrFail } from "./run.mjs";
import { hashOf, readStamp, writeStamp } from "./stamp.mjs";

const stampPath = join(root, "node_modules", ".fermata-stamp");

export async function setUpDependencies() {
  const wanted = hashOf([join(root, "package-lock.json")]);
  if (readStamp(stampPath) === wanted) return;
  await timed("Installing npm packages", async () => {
    const [program, args] = npmCommand([
      "ci",
      "--include=dev",
      "--no-audit",
      "--no-fund",
      "--no-usage",
    ]);
    await runOrFail("npm ci", program, args, { cwd: root });
  });
  writeStamp(stampPath, wanted);
}
