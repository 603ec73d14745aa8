// However a process of `fermata serve` ends, its MCP servers end with it, and what they started: also those
// that ignore the end of their input and SIGTERM.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { times } from "./support/injections.ts";
import { isAlive } from "./support/processes.ts";

let folder: string;
let server: ServedCommand | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "fermata-orphans-"));
});
afterEach(async () => {
  await server?.stop("SIGKILL");
  server = undefined;
  await rm(folder, { recursive: true });
});

const fixture = join(import.meta.dirname, "../fixtures/mcp/stubborn.mjs");
const serversCount = 3;

async function serve(...args: string[]): Promise<{ main: number; worker: number }> {
  const names = Array.from({ length: serversCount }, (_, index) => `stubborn${index}`);
  const mcpServers = Object.fromEntries(
    names.map((name) => [
      name,
      { command: process.execPath, args: [fixture, join(folder, "pids")] },
    ]),
  );
  const config = join(folder, "mcp.json");
  await writeFile(config, JSON.stringify({ mcpServers }));
  server = await serveCommand("--store=none", `--mcp-config=${config}`, ...args);
  const main = server.process.pid!;
  if (args.includes("--no-supervise")) return { main, worker: main };
  const pid = await eventually(() => {
    const found = [...server!.log().matchAll(/"pid":(\d+)[^\n]*worker ready/g)].at(-1);
    expect(found).toBeDefined();
    return Number(found![1]);
  });
  return { main, worker: pid };
}

/** Servers and their children, of every start. */
async function started(): Promise<number[]> {
  const text = await readFile(join(folder, "pids"), "utf8");
  return text.trim().split(/\s+/).map(Number);
}

async function expectGone(pids: readonly number[]): Promise<void> {
  await eventually(async () => {
    const alive = await Promise.all(pids.map(isAlive));
    expect(pids.filter((_, index) => alive[index])).toEqual([]);
  });
}

const deaths: [string, string[], ("main" | "worker")[], NodeJS.Signals][] = [
  ["the worker, SIGKILL", [], ["worker"], "SIGKILL"],
  ["the worker, SIGABRT", [], ["worker"], "SIGABRT"],
  ["the supervisor, SIGKILL", [], ["main"], "SIGKILL"],
  ["the supervisor, SIGABRT", [], ["main"], "SIGABRT"],
  ["both at once, SIGKILL", [], ["main", "worker"], "SIGKILL"],
  ["one process alone, SIGKILL", ["--no-supervise"], ["main"], "SIGKILL"],
  ["one process alone, SIGABRT", ["--no-supervise"], ["main"], "SIGABRT"],
];

test.each(deaths)("%s: no MCP server is left", async (_name, args, victims, signal) => {
  for (let count = 0; count < times(1, 20); count++) {
    const pids = await serve(...args);
    const running = await started();
    expect(await Promise.all(running.map(isAlive))).not.toContain(false);
    for (const victim of victims) process.kill(pids[victim], signal);
    await expectGone(running);
    await server!.stop("SIGKILL");
    await expectGone(await started());
    await rm(join(folder, "pids"));
  }
});

test("a worker that hangs does not outlive a supervisor that is killed", async () => {
  for (let count = 0; count < times(1, 20); count++) {
    const { main, worker } = await serve();
    const running = await started();
    process.kill(worker, "SIGSTOP");
    process.kill(main, "SIGKILL");
    await expectGone([worker, ...running]);
  }
});
