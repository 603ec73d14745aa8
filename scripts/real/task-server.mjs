// One `fermata serve` for all tasks, so that they share its prefix cache.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../setup/paths.mjs";
import { SetupError } from "../setup/report.mjs";
import { memoryFile, taskFolder } from "./task-folder.mjs";

const own = join(root, "node_modules/@modelcontextprotocol");
const fetched = join(root, "scripts/real/node_modules/@modelcontextprotocol");
const node = (path, ...args) => ({ command: process.execPath, args: [path, ...args] });

const mcpServers = {
  files: node(join(own, "server-filesystem/dist/index.js"), taskFolder),
  everything: node(join(own, "server-everything/dist/index.js")),
  memory: {
    ...node(join(fetched, "server-memory/dist/index.js")),
    env: { MEMORY_FILE_PATH: memoryFile },
  },
  thinking: node(join(fetched, "server-sequential-thinking/dist/index.js")),
};

// One answer at a time; what a chosen set of tools takes stays in the cache.
const options = ["--parallel", "1", "--retained-slots", "5", "--ctx-size", "8192"];

/** Resolves when all MCP servers are ready: { url, stop }. */
export async function startTaskServer(model) {
  const home = mkdtempSync(join(tmpdir(), "fermata-task-server-"));
  const config = join(home, "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers }));
  const args = ["serve", "--port", "0", "--store", "none", "--model", model, "--no-supervise"];
  const child = spawn(
    process.execPath,
    [join(root, "dist/cli/main.js"), ...args, ...options, "--mcp-config", config],
    { stdio: ["ignore", "pipe", "pipe"] },
  );
  let log = "";
  child.stderr.on("data", (text) => (log = `${log}${text}`.slice(-20_000)));
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const url = await new Promise((resolve, reject) => {
    let out = "";
    child.stdout.on("data", (text) => {
      out += text;
      const serving = /Serving +(\S+)\/v1/.exec(out);
      if (serving) resolve(serving[1]);
    });
    void exited.then(() => reject(new SetupError(`The server ended:\n${log}`)));
  });
  await toolsReady(url);
  return {
    url,
    async stop() {
      child.kill();
      await exited;
      rmSync(home, { recursive: true });
    },
  };
}

async function toolsReady(url) {
  for (;;) {
    const { servers } = await (await fetch(`${url}/api/tools`)).json();
    if (servers.every(({ state }) => state === "ready")) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
