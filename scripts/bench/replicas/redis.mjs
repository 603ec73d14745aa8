import { once } from "node:events";
import { existsSync } from "node:fs";
import { createConnection } from "node:net";
import { startProcess } from "../processes.mjs";
import { freePort } from "./proxies.mjs";

const program = ["/usr/bin/redis-server", "/usr/local/bin/redis-server"].find((path) =>
  existsSync(path),
);

async function listens(port, ended) {
  for (;;) {
    const socket = createConnection(port, "127.0.0.1");
    try {
      await Promise.race([once(socket, "connect"), ended]);
      return;
    } catch (error) {
      if (error.code !== "ECONNREFUSED") throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    } finally {
      socket.destroy();
    }
  }
}

/** A Redis that keeps nothing on disk. Resolves with { port, url, stop } when it listens; null: it is not installed. */
export async function startRedis() {
  if (program === undefined) return null;
  const port = await freePort();
  const args = ["--port", String(port), "--save", "", "--bind", "127.0.0.1"];
  const { child, closed } = startProcess(program, args);
  const ended = closed.then(({ tail }) => {
    throw new Error(`redis-server ended:\n${tail}`);
  });
  ended.catch(() => {});
  await listens(port, ended);
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    async stop() {
      child.kill("SIGKILL");
      await closed;
    },
  };
}
