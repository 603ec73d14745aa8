import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bundle } from "./bundle.mjs";
import { distDir, root } from "./paths.mjs";
import { timed } from "./report.mjs";
import { runOrFail } from "./run.mjs";
import { filesUnder, hashOf, readStamp, writeStamp } from "./stamp.mjs";

const stampPath = join(distDir, ".fermata-stamp");

export async function setUpTypeScript() {
  const names = [
    "tsconfig.json",
    "tsconfig.build.json",
    "package-lock.json",
    "scripts/setup/bundle.mjs",
  ];
  const inputs = [...names.map((name) => join(root, name)), ...filesUnder(join(root, "src"))];
  const key = hashOf(inputs);
  if (existsSync(distDir) && readStamp(stampPath) === key) return;
  await timed("Compiling TypeScript", async () => {
    // A file that has no source any more must not stay importable.
    rmSync(distDir, { recursive: true, force: true });
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    await runOrFail("tsc", process.execPath, [tsc, "-p", "tsconfig.build.json"], { cwd: root });
    await bundle();
  });
  writeStamp(stampPath, key);
}
