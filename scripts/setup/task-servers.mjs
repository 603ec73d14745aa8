// MCP servers that only the tasks of `npm run test:real` need: npm packages of their own lock.
import { join } from "node:path";
import { root } from "./paths.mjs";
import { timed } from "./report.mjs";
import { npmCommand, runOrFail } from "./run.mjs";
import { hashOf, readStamp, writeStamp } from "./stamp.mjs";

const folder = join(root, "scripts", "real");
const stampPath = join(folder, "node_modules", ".fermata-stamp");

export async function setUpTaskServers() {
  const wanted = hashOf([join(folder, "package-lock.json")]);
  if (readStamp(stampPath) === wanted) return;
  await timed("Installing the MCP servers of the tasks", async () => {
    const [program, args] = npmCommand(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    await runOrFail("npm ci", program, args, { cwd: folder });
  });
  writeStamp(stampPath, wanted);
}
