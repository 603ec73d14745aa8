import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "./paths.mjs";
import { timed } from "./report.mjs";
import { runOrFail } from "./run.mjs";
import { filesUnder, hashOf, readStamp, writeStamp } from "./stamp.mjs";

const uiDir = join(root, "ui");
const pageDir = join(uiDir, "dist");
const stampPath = join(pageDir, ".fermata-stamp");

export async function setUpPage() {
  const names = ["tsconfig.json", "package-lock.json"].map((name) => join(root, name));
  const sources = filesUnder(uiDir).filter((file) => !file.startsWith(pageDir));
  const key = hashOf([...names, ...sources]);
  if (existsSync(pageDir) && readStamp(stampPath) === key) return;
  await timed("Building the web page", async () => {
    const vite = join(root, "node_modules/vite/bin/vite.js");
    await runOrFail("vite build", process.execPath, [vite, "build", "ui"], { cwd: root });
  });
  writeStamp(stampPath, key);
}
