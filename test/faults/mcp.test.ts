// MCP servers that start and end again and again, and such as stay connected and answer nothing. Needs `npm run build`.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { type HalfOpenServer, type Silence, startHalfOpen } from "./support/half-open-server.ts";
import { times, told } from "./support/injections.ts";
import { isAlive } from "./support/processes.ts";
import { endlessStream, post, workerOf } from "./support/served.ts";

let folder: string;
let far: HalfOpenServer;
let server: ServedCommand | undefined;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "fermata-mcp-"));
  far = await startHalfOpen();
});
afterEach(async () => {
  await server?.stop("SIGKILL");
  server = undefined;
  await far.close();
  rmSync(folder, { recursive: true });
});

const fixture = (name: string): string => join(import.meta.dirname, "../fixtures/mcp", name);
const good = { command: process.execPath, args: [fixture("counting.mjs"), "/dev/null"] };

async function serve(mcpServers: object, ...args: string[]): Promise<ServedCommand> {
  const config = join(folder, "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers }));
  return await serveCommand("--store=none", ...args, `--mcp-config=${config}`);
}

type Item = { type: string; output: string | null; error: string | null };

const asking = (label: string): object => ({
  input: "What's the weather in Tokyo?",
  temperature: 0,
  max_output_tokens: 40,
  tools: [{ type: "mcp", server_label: label, require_approval: "never" }],
  tool_choice: "required",
});

/** One response that calls the tool of a server. */
async function call(label: string): Promise<Item> {
  const reply = await post(server!, "/v1/responses", asking(label));
  const { output } = (await reply.json()) as { output: Item[] };
  return output.find(({ type }) => type === "mcp_call")!;
}

interface Told {
  name: string;
  state: string;
  error: string | null;
  tools: object[];
}
async function toldServers(): Promise<Told[]> {
  return ((await (await fetch(`${server!.url}/api/tools`)).json()) as { servers: Told[] }).servers;
}

test("servers that end as soon as they have started: a few tries each, and nothing of them is left", async () => {
  const count = times(10, 40);
  const names = Array.from({ length: count }, (_, index) => `flapping${index}`);
  const flapping = { command: "sh", args: [fixture("flapping.sh"), join(folder, "pids")] };
  const flock = Object.fromEntries(names.map((name) => [name, flapping]));
  // Ready for a moment only: not all of them at once.
  const config = join(folder, "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers: { ...flock, good } }));
  process.env["FERMATA_MCP_CONFIG"] = config;
  try {
    server = await serveCommand("--store=none");
  } finally {
    delete process.env["FERMATA_MCP_CONFIG"];
  }
  const worker = await workerOf(server, 1);
  const started = (): number[] =>
    readFileSync(join(folder, "pids"), "utf8").trim().split(/\s+/).map(Number);
  await eventually(async () => {
    const servers = await toldServers();
    expect(servers.filter(({ state }) => state === "failed")).toHaveLength(count);
  });
  // Four pauses, each twice as long; the next try comes after a minute.
  expect(started()).toHaveLength(2 * 5 * count);
  const pauses = [...server.log().matchAll(/"server":"flapping0",.*?"again_in_ms":(\d+)/g)];
  expect(pauses.map(([, ms]) => Number(ms))).toEqual([1000, 2000, 4000, 8000, 60_000]);
  const [bad] = await toldServers();
  expect(bad).toMatchObject({ state: "failed", error: "it exited with code 7", tools: [] });
  await eventually(async () => {
    const alive = await Promise.all(started().map(isAlive));
    expect(started().filter((_, index) => alive[index])).toEqual([]);
  });
  expect(await call("good")).toMatchObject({ output: "Sunny, 21 degrees.", error: null });
  // Three of each server: if as many as one of each start were left, they would show.
  expect(readdirSync(`/proc/${worker}/fd`).length).toBeLessThan(30 + 2 * count);
  expect(await workerOf(server, 1)).toBe(worker);
  told("MCP servers that end as soon as", 5 * count);
});

const silences: Silence[] = ["no head", "half a body", "events without an answer"];

test.each(silences)(
  "a remote server that answers calls with %s: each call fails in its time, and its connection is closed",
  async (silence) => {
    server = await serve({ far: { type: "http", url: far.url, timeoutSeconds: 1 }, good });
    const count = times(6, 60);
    far.silence = silence;
    for (let done = 0; done < count; done += 6) {
      const calls = await Promise.all(Array.from({ length: 6 }, () => call("far")));
      for (const { error } of calls) expect(error).toMatch(/did not answer within 1 seconds/);
    }
    expect(far.calls).toBe(count);
    await eventually(() => expect(far.open.size).toBe(0));
    // It answers what else it is asked: it is not started again.
    far.silence = null;
    expect(await call("far")).toMatchObject({ output: "Sunny, 21 degrees." });
    expect(server.log()).not.toContain("starting it again");
    told("remote MCP server that takes calls and never answers", count, silences.length);
  },
);

test("a remote server that answers nothing: others go on meanwhile, it is connected anew", async () => {
  server = await serve({ far: { type: "http", url: far.url, timeoutSeconds: 600 }, good });
  const stream = await endlessStream(server);
  far.silence = "no head";
  let isOver = false;
  const stuck = call("far").finally(() => (isOver = true));
  await eventually(() => expect(far.open.size).toBe(1));
  for (let count = 0; count < 3; count++) {
    const length = stream.text().length;
    expect(await call("good")).toMatchObject({ output: "Sunny, 21 degrees." });
    await eventually(() => expect(stream.text().length).toBeGreaterThan(length));
  }
  expect(isOver).toBe(false);
  for (const response of far.open) response.destroy();
  expect((await stuck).error).toBeTruthy();
  stream.leave();
  told("remote MCP server that does not answer, amid", 1);
});

test("a remote server that comes and goes: a call fails while it is away, it is back each time, others go on", async () => {
  server = await serve({ far: { type: "http", url: far.url, timeoutSeconds: 600 }, good });
  const worker = await workerOf(server, 1);
  const stream = await endlessStream(server);
  const port = Number(new URL(far.url).port);
  const count = times(2, 20);
  for (let round = 1; round <= count; round++) {
    expect(await call("far")).toMatchObject({ output: "Sunny, 21 degrees.", error: null });
    await far.close();
    expect((await call("far")).error).toBeTruthy();
    await eventually(async () =>
      expect((await toldServers())[0]).toMatchObject({ name: "far", state: "restarting" }),
    );
    far = await startHalfOpen(port);
    expect(await call("good")).toMatchObject({ output: "Sunny, 21 degrees.", error: null });
    await eventually(() =>
      expect(server!.log().match(/"server":"far"[^\n]*MCP server is back/g)).toHaveLength(round),
    );
    const length = stream.text().length;
    await eventually(() => expect(stream.text().length).toBeGreaterThan(length));
  }
  expect(await call("far")).toMatchObject({ output: "Sunny, 21 degrees.", error: null });
  // A call that worked ends the row of failures, after which a server is out of order.
  expect(server.log().match(/"server":"far"[^\n]*"failures":1,/g)).toHaveLength(count);
  expect(await workerOf(server, 1)).toBe(worker);
  stream.leave();
  told("remote MCP server that comes and goes", count);
});

const called = (): string => join(folder, "called");
const halfOpen = (fault: string): object => ({
  command: process.execPath,
  args: [fixture("half-open.mjs"), fault, called()],
});

const deaf: [fault: string, error: RegExp, reason: string][] = [
  ["stops", /did not answer within 1 seconds/, "it answers nothing any more"],
  [
    "closes its output",
    /did not answer within 1 seconds|Connection closed/,
    "it closed its input or output and was ended",
  ],
];

test.each(deaf)(
  "a server that %s when it is called: the call fails, it is started anew, others go on",
  async (fault, said, reason) => {
    server = await serve({ half: { ...halfOpen(fault), timeoutSeconds: 1 }, good });
    const stream = await endlessStream(server);
    const count = times(2, 4);
    for (let restarts = 1; restarts <= count; restarts++) {
      const [failed, other] = await Promise.all([call("half"), call("good")]);
      expect(failed.error).toMatch(said);
      expect(other).toMatchObject({ output: "Sunny, 21 degrees." });
      await eventually(() =>
        expect(server!.log().split(`"reason":"${reason}"`)).toHaveLength(restarts + 1),
      );
      await server.toolsReady();
    }
    const length = stream.text().length;
    await eventually(() => expect(stream.text().length).toBeGreaterThan(length));
    stream.leave();
    told("MCP server that is stopped (SIGSTOP) or closes its output", count, deaf.length);
  },
);

test("a server that closes its input when it is called, and the client leaves: it is started anew", async () => {
  server = await serve({ half: { ...halfOpen("closes its input"), timeoutSeconds: 600 }, good });
  const count = times(2, 4);
  for (let restarts = 1; restarts <= count; restarts++) {
    const leaving = new AbortController();
    const asked = fetch(`${server.url}/v1/responses`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(asking("half")),
      signal: leaving.signal,
    });
    await eventually(() => expect(existsSync(called())).toBe(true));
    rmSync(called());
    leaving.abort();
    await expect(asked).rejects.toThrow("aborted");
    await eventually(() =>
      expect(server!.log().split('"reason":"it closed its input')).toHaveLength(restarts + 1),
    );
    await server.toolsReady();
  }
  expect(await call("good")).toMatchObject({ output: "Sunny, 21 degrees." });
  told("MCP server that closes its input", count);
});
