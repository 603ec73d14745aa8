import { createServer } from "node:net";
import { SetupError } from "../../setup/report.mjs";
import { startProcess } from "../processes.mjs";

const startLimitMs = 300_000;
const stopLimitMs = 10_000;
const pollMs = 100;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

function endedEarly(name, { code, signal, tail }) {
  return new SetupError(`${name} ended with ${signal ?? code}:\n${tail}`);
}

async function isHealthy(url) {
  try {
    return (await fetch(`${url}/health`)).ok;
  } catch {
    return false;
  }
}

/**
 * Starts a server, `program` with `args` and a free port, and waits until it is healthy. Returns
 * { pid, during, stop }. `stop` resolves when the process has ended.
 */
export async function startServer(name, program, args, options) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const { child, closed } = startProcess(program, [...args, "--port", String(port)], options);
  let ended;
  void closed.then((result) => (ended = result));

  const deadline = performance.now() + startLimitMs;
  while (!(await isHealthy(url))) {
    if (ended) throw endedEarly(name, ended);
    if (performance.now() > deadline) {
      child.kill("SIGKILL");
      throw new SetupError(`${name} was not healthy after ${startLimitMs / 1000} s.`);
    }
    await sleep(pollMs);
  }

  /** Runs `action` against the server; if the server dies, that is the error. */
  const during = async (action) => {
    try {
      return await action(url);
    } catch (error) {
      // A connection breaks a moment before the process is known to have ended.
      await sleep(pollMs);
      throw ended ? endedEarly(name, ended) : error;
    }
  };
  const stop = async () => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), stopLimitMs);
    await closed;
    clearTimeout(timer);
  };
  return { pid: child.pid, during, stop };
}
