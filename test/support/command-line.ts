// `fermata serve` as a person has it: in processes of its own, from dist/.
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { eventually } from "./eventually.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface ServedCommand {
  url: string;
  process: ChildProcess;
  /** What it printed to standard output so far. */
  out(): string;
  /** What it logged so far. */
  log(): string;
  /** Resolves when all MCP servers are ready: the server does not wait for those that are slow to start. */
  toolsReady(): Promise<void>;
  /** Ends it with a signal; resolves to the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Resolves when it serves, on a free port, and all its MCP servers are ready. */
export async function serveCommand(...args: string[]): Promise<ServedCommand> {
  return await serveBelow([], ...args);
}

/** @param above a program and its arguments, which starts what follows them */
export async function serveBelow(above: string[], ...args: string[]): Promise<ServedCommand> {
  const serve = [process.execPath, "dist/cli/main.js", "serve", "--port=0", ...args];
  const [program, ...all] = [...above, ...serve] as [string, ...string[]];
  const child = spawn(program, all, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  let out = "";
  let err = "";
  child.stderr.on("data", (text) => (err += String(text)));
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", (text) => {
      out += String(text);
      const serving = /Serving +(\S+)\/v1/.exec(out);
      if (serving !== null) resolve(serving[1]!);
    });
    void exited.then((code) => reject(new Error(`The server ended with ${code}.\n${err}`)));
  });
  const toolsReady = (): Promise<void> => eventually(() => expectTools(url));
  if (args.some((arg) => arg.startsWith("--mcp"))) await toolsReady();
  return {
    url,
    process: child,
    out: () => out,
    log: () => err,
    toolsReady,
    stop(signal = "SIGTERM") {
      child.kill(signal);
      return exited;
    },
  };
}

async function expectTools(url: string): Promise<void> {
  const { servers } = (await (await fetch(`${url}/api/tools`)).json()) as { servers: object[] };
  for (const server of servers) expect(server).toMatchObject({ state: "ready" });
}
