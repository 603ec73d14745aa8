// `fermata rpc-server` as a process of its own, from dist/.
import { type ChildProcess, spawn } from "node:child_process";
import { connect, createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { eventually } from "./eventually.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface StartedRpcServer {
  /** As `--rpc` takes it. */
  endpoint: string;
  port: number;
  process: ChildProcess;
  log(): string;
  /** Resolves to the exit code or the name of the signal. */
  stop(signal?: NodeJS.Signals): Promise<number | string | null>;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Resolves when it accepts connections. */
export async function startRpcServer(port: number, ...args: string[]): Promise<StartedRpcServer> {
  const child = spawn(
    process.execPath,
    ["dist/cli/main.js", "rpc-server", `--port=${port}`, "--threads=1", ...args],
    { cwd: root, stdio: ["ignore", "pipe", "pipe"] },
  );
  const exited = new Promise<number | string | null>((resolve) =>
    child.once("exit", (code, signal) => resolve(code ?? signal)),
  );
  let log = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (text) => (log += String(text)));
  await eventually(
    () =>
      new Promise<void>((resolve, reject) => {
        // Before it says something it may only be trying whether the port is free.
        if (log === "") return reject(new Error("The RPC server has not begun."));
        const socket = connect(port, "127.0.0.1", () => {
          socket.destroy();
          resolve();
        });
        socket.once("error", reject);
      }),
  );
  return {
    endpoint: `127.0.0.1:${port}`,
    port,
    process: child,
    log: () => log,
    stop(signal = "SIGTERM") {
      child.kill(signal);
      child.kill("SIGCONT");
      return exited;
    },
  };
}
