import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startProcess } from "../processes.mjs";
import { root } from "../../setup/paths.mjs";
import { freePort } from "./proxies.mjs";

const listening = async (url) => {
  try {
    return (await fetch(`${url}/ready`)).ok;
  } catch {
    return false;
  }
};

/** A `fermata serve` with a name; `kill` and `start` it again on its port as often as you like. */
export async function startReplica(name, options) {
  const folder = mkdtempSync(join(tmpdir(), "fermata-replica-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const args = [
    join(root, "dist/cli/main.js"),
    "serve",
    `--port=${port}`,
    `--replica=${name}`,
    `--store=${join(folder, "store.sqlite")}`,
    "--log-level=error",
    ...options,
  ];
  let running;
  const replica = {
    name,
    port,
    url,
    async start() {
      running = startProcess(process.execPath, args);
      const ended = running.closed.then(({ tail }) => {
        throw new Error(`${name} ended:\n${tail}`);
      });
      ended.catch(() => {});
      while (!(await Promise.race([listening(url), ended])))
        await new Promise((resolve) => setTimeout(resolve, 50));
    },
    async kill(signal = "SIGKILL") {
      running.child.kill(signal);
      await running.closed;
    },
    async stop() {
      await replica.kill("SIGTERM");
      rmSync(folder, { recursive: true });
    },
    async metric(metric) {
      const text = await (await fetch(`${url}/metrics`)).text();
      return Number(new RegExp(`^${metric} (\\S+)$`, "m").exec(text)[1]);
    },
  };
  await replica.start();
  return replica;
}
