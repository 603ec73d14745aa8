// However a process of `fermata serve` ends, its MCP servers end with it, and what they started: also those
// that ignore the end of their input and SIGTERM.
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { serveBelow, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { times, told } from "./support/injections.ts";
import { isAlive } from "./support/processes.ts";
import { endlessStream, post } from "./support/served.ts";

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
  return await serveUnder([], ...args);
}

async function serveUnder(
  above: string[],
  ...args: string[]
): Promise<{ main: number; worker: number }> {
  const names = Array.from({ length: serversCount }, (_, index) => `stubborn${index}`);
  const mcpServers = Object.fromEntries(
    names.map((name) => [
      name,
      { command: process.execPath, args: [fixture, join(folder, "pids")] },
    ]),
  );
  const config = join(folder, "mcp.json");
  await writeFile(config, JSON.stringify({ mcpServers }));
  server = await serveBelow(above, "--store=none", `--mcp-config=${config}`, ...args);
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
  ["worker killed (SIGKILL)", [], ["worker"], "SIGKILL"],
  ["worker aborts (SIGABRT)", [], ["worker"], "SIGABRT"],
  ["supervisor killed", [], ["main"], "SIGKILL"],
  ["supervisor aborts", [], ["main"], "SIGABRT"],
  ["both killed at once", [], ["main", "worker"], "SIGKILL"],
  ["`--no-supervise`: killed", ["--no-supervise"], ["main"], "SIGKILL"],
  ["`--no-supervise`: aborts", ["--no-supervise"], ["main"], "SIGABRT"],
];

test.each(deaths)("%s: no MCP server is left", async (name, args, victims, signal) => {
  const count = times(1, 20);
  for (let round = 0; round < count; round++) {
    const pids = await serve(...args);
    const running = await started();
    expect(await Promise.all(running.map(isAlive))).not.toContain(false);
    for (const victim of victims) process.kill(pids[victim], signal);
    await expectGone(running);
    await server!.stop("SIGKILL");
    await expectGone(await started());
    await rm(join(folder, "pids"));
  }
  told(`${name}, beside`, count);
});

const ends: [string, string[], NodeJS.Signals][] = [
  ["stopped (SIGTERM)", [], "SIGTERM"],
  ["stopped (SIGINT)", [], "SIGINT"],
  ["`--no-supervise`: stopped (SIGTERM)", ["--no-supervise"], "SIGTERM"],
  ["`--no-supervise`: stopped (SIGINT)", ["--no-supervise"], "SIGINT"],
];

test.each(ends)("%s: no MCP server is left", async (name, args, signal) => {
  const count = times(1, 20);
  for (let round = 0; round < count; round++) {
    await serve(...args);
    const running = await started();
    expect(running).toHaveLength(2 * serversCount);
    expect(await Promise.all(running.map(isAlive))).not.toContain(false);
    expect(await server!.stop(signal)).toBe(0);
    await expectGone(running);
    expect(await started()).toEqual(running);
    await rm(join(folder, "pids"));
  }
  told(`${name}, beside`, count);
});

const waiting = {
  input: "Wait.",
  temperature: 0,
  max_output_tokens: 40,
  tools: [{ type: "mcp", server_label: "stubborn0", require_approval: "never" }],
  tool_choice: "required",
};

test("the worker aborts amid streams and calls: every client is told, and no MCP server is left", async () => {
  const count = times(1, 20);
  for (let round = 0; round < count; round++) {
    const audit = join(folder, "audit.jsonl");
    const { worker } = await serve(`--audit-log=${audit}`, "--parallel=4");
    const streams = await Promise.all([1, 2, 3].map(() => endlessStream(server!)));
    const calls = [1, 2].map(() => post(server!, "/v1/responses", waiting));
    await eventually(async () =>
      expect((await readFile(audit, "utf8")).match(/"event":"start"/g)).toHaveLength(calls.length),
    );
    const running = await started();
    process.kill(worker, "SIGABRT");
    for (const { ended, text } of streams) {
      await ended;
      expect(text().trimEnd().split("\n\n").at(-1)).toMatch(
        /^event: error\ndata: .*"code":"engine_crashed"/,
      );
    }
    for (const reply of await Promise.all(calls)) {
      expect(reply.status).toBe(503);
      expect(await reply.json()).toMatchObject({ error: { code: "engine_crashed" } });
    }
    await expectGone(running);
    await server!.stop("SIGKILL");
    await expectGone(await started());
    await rm(join(folder, "pids"));
    await rm(audit);
  }
  told("worker aborts (SIGABRT) amid", count);
});

test("a worker that hangs does not outlive a supervisor that is killed", async () => {
  const count = times(1, 20);
  for (let round = 0; round < count; round++) {
    const { main, worker } = await serve();
    const running = await started();
    process.kill(worker, "SIGSTOP");
    process.kill(main, "SIGKILL");
    await expectGone([worker, ...running]);
  }
  told("supervisor killed while the worker is stopped", count);
});

/** In a PID namespace, below a shell that is its process 1, as in a container: it reaps what nobody waits for. */
const asContainer = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
const mayUnshare = spawnSync(asContainer[0]!, [...asContainer.slice(1), "true"]).status === 0;

/** Processes of namespaces below ours, dead ones that nobody waited for too: their ids here by those in there. */
async function inNamespace(init: number): Promise<Map<number, number>> {
  const found = new Map<number, number>();
  const parents = new Map<number, number>();
  const inner = new Map<number, number>();
  for (const name of (await readdir("/proc")).filter((entry) => /^\d+$/.test(entry))) {
    const status = await readFile(`/proc/${name}/status`, "utf8").catch(() => "");
    const ids = /^NSpid:\s+(\d+)\s+(\d+)$/m.exec(status);
    parents.set(Number(name), Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]));
    if (ids !== null) inner.set(Number(name), Number(ids[2]));
  }
  for (const [pid, id] of inner) {
    let above: number | undefined = pid;
    while (above !== undefined && above > 1 && above !== init) above = parents.get(above);
    if (above === init) found.set(id, pid);
  }
  return found;
}

// Skipped where this user may make no PID namespace.
test.runIf(mayUnshare)(
  "in a container with an init: not even dead processes of MCP servers are left",
  async () => {
    const { main, worker } = await serveUnder([...asContainer, "sh", "-c", '"$@" & wait', "sh"]);
    const first = await started();
    const before = await inNamespace(main);
    expect(first.filter((id) => before.has(id))).toEqual(first);
    process.kill(before.get(worker)!, "SIGKILL");
    await eventually(async () => {
      const now = await inNamespace(main);
      expect(first.filter((id) => now.has(id))).toEqual([]);
    });
    await server!.toolsReady();
    const second = (await started()).slice(first.length);
    expect(second).toHaveLength(first.length);
    const all = await inNamespace(main);
    // Process 1 has the lowest id; its only child is the supervisor.
    process.kill(all.get(Math.min(...[...all.keys()].filter((id) => id > 1)))!, "SIGKILL");
    await eventually(async () => expect((await inNamespace(main)).size).toBe(0));
    expect(second.every((id) => all.has(id))).toBe(true);
    told("worker, then supervisor killed in a PID namespace", 2);
  },
);
