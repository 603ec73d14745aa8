// What the machine does to a server: its clock jumps, its disk is slow, another process locks the store, no memory is left. Needs `npm run build`.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { canFail, failing, type Faults, injectedBy } from "./support/failing-io.ts";
import { times, told } from "./support/injections.ts";
import { endlessStream, post, workerOf } from "./support/served.ts";

let folder: string;
let server: ServedCommand | undefined;
const at = (name: string): string => join(folder, name);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fermata-machine-"));
});
afterEach(async () => {
  await server?.stop("SIGKILL");
  server = undefined;
  rmSync(folder, { recursive: true });
});

async function start(faults: Faults | null): Promise<ServedCommand> {
  for (const [name, value] of Object.entries(faults === null ? {} : failing(faults)))
    vi.stubEnv(name, value);
  try {
    return await serveCommand(`--store=${at("store.sqlite")}`);
  } finally {
    vi.unstubAllEnvs();
  }
}

/** The id of a response that the server has stored. */
async function stored(): Promise<string> {
  const reply = await post(server!, "/v1/responses", { input: "Hi", max_output_tokens: 16 });
  expect(reply.status).toBe(200);
  return ((await reply.json()) as { id: string }).id;
}

const isThere = async (id: string): Promise<void> =>
  expect((await fetch(`${server!.url}/v1/responses/${id}`)).status).toBe(200);

async function goesOn(stream: { text(): string }): Promise<void> {
  const { length } = stream.text();
  await eventually(() => expect(stream.text().length).toBeGreaterThan(length));
}

test.runIf(canFail)(
  "the clock jumps, ahead and back: streams go on, nothing hangs, and what was stored is there",
  async () => {
    const clock = at("clock");
    writeFileSync(clock, "0");
    server = await start({ clock });
    const worker = await workerOf(server, 1);
    const ids: string[] = [await stored()];
    const stream = await endlessStream(server);
    const [year, day] = [365 * 24 * 3600, 24 * 3600];
    const jumps = [year, 0, -day, 0, 40 * day, -40 * day, 10 * year, 0, -year, year];
    let count = 0;
    for (let round = 0; round < times(1, 10); round++)
      for (const ahead of [...jumps, 0]) {
        writeFileSync(clock, String(ahead));
        count += 1;
        await goesOn(stream);
        ids.push(await stored());
        const ready = await fetch(`${server.url}/ready`);
        expect(ready.status).toBe(200);
      }
    stream.leave();
    expect(await workerOf(server, 1)).toBe(worker);
    for (const id of ids) await isThere(id);
    told("the clock jumps amid a stream", count);
  },
);

test.runIf(canFail)(
  "writes and syncs of the store take long: streams go on, and what was answered is there after a kill",
  async () => {
    const count = at("count");
    server = await start({ path: "store.sqlite", every: 3, delayMs: 50, count });
    const stream = await endlessStream(server);
    const ids: string[] = [];
    for (let round = 0; round < times(4, 40); round++) {
      const asked = stored();
      await goesOn(stream);
      ids.push(await asked);
    }
    expect(injectedBy(count)).toBeGreaterThan(10);
    told("writes and syncs of the store take", injectedBy(count));
    await server.stop("SIGKILL");
    // The worker ends after its supervisor, and has the store until then.
    server = await eventually(() => start(null));
    for (const id of ids) await isThere(id);
  },
);

test("another process locks the store: streams go on, and what waited is written afterwards", async () => {
  server = await start(null);
  const stream = await endlessStream(server);
  const count = times(3, 30);
  for (let round = 0; round < count; round++) {
    const other = new Database(at("store.sqlite"));
    other.exec("BEGIN IMMEDIATE");
    let isAnswered = false;
    const asked = stored().finally(() => (isAnswered = true));
    for (let piece = 0; piece < 5; piece++) await goesOn(stream);
    expect(isAnswered).toBe(false);
    other.exec("COMMIT");
    other.close();
    await isThere(await asked);
  }
  stream.leave();
  told("another process locks the store, amid", count);
});

const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;

test.runIf(hasPrlimit)(
  "no memory is left for the worker: a stream ends with an error event, waiting requests with 503, and the service is back",
  async () => {
    const count = times(2, 20);
    server = await start(null);
    const earlier = await stored();
    for (let round = 1; round <= count; round++) {
      const stream = await endlessStream(server);
      const pid = await workerOf(server, round);
      execFileSync("prlimit", [`--pid=${pid}`, "--as=1000000:"]);
      const body = { messages: [{ role: "user", content: "a ".repeat(1_900_000) }] };
      // Each takes more memory than is left, in JavaScript or in the engine.
      const asked = Array.from({ length: 6 }, async () => {
        const reply = await post(server!, "/v1/chat/completions", body);
        return [reply.status, ((await reply.json()) as { error: { code: string } }).error.code];
      });
      for (const outcome of await Promise.all(asked))
        expect([
          [503, "engine_crashed"],
          [400, "context_length_exceeded"],
          [422, "request_quarantined"],
        ]).toContainEqual(outcome);
      await stream.ended.catch(() => {});
      expect(stream.text()).toContain('"code":"engine_crashed"');
      await workerOf(server, round + 1);
      await eventually(() => isThere(earlier));
    }
    told("no memory is left for the worker", count);
  },
);
