// A worker that hangs is killed and started again: its streams end as those of a dead one.
import { fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { times, told } from "./support/injections.ts";
import { endlessStream, workerOf } from "./support/served.ts";

let server: ServedCommand | undefined;
afterEach(async () => {
  delete process.env["NODE_OPTIONS"];
  delete process.env["FERMATA_TEST_STEP_AGE"];
  await server?.stop("SIGKILL");
  server = undefined;
});

const importing = (fixture: string): string =>
  `--import=${pathToFileURL(join(import.meta.dirname, "../fixtures", fixture)).href}`;

test.each([
  ["is stopped", "SIGSTOP", "worker stopped (SIGSTOP) amid"],
  ["blocks its event loop", "SIGUSR2", "event loop of the worker blocked"],
] as const)(
  "a worker that %s: killed, its stream told, and the service is back",
  async (_name, signal, fault) => {
    process.env["NODE_OPTIONS"] = importing("block-event-loop.mjs");
    server = await serveCommand("--store=none", "--process-timeout=loop=12");
    const count = times(1, 20);
    for (let round = 1; round <= count; round++) {
      const worker = await workerOf(server, round);
      const stream = await endlessStream(server);
      process.kill(worker, signal);
      await stream.ended;
      expect(stream.text().trimEnd().split("\n\n").at(-1)).toMatch(
        /^event: error\ndata: .*"code":"engine_crashed"/,
      );
      expect(server.log()).toMatch(
        new RegExp(
          `"pid":${worker},"thread":"javascript","seconds":12,"msg":"the worker hangs and is killed"`,
        ),
      );
      await workerOf(server, round + 1);
      await eventually(async () => expect((await fetch(`${server!.url}/ready`)).status).toBe(200));
    }
    told(fault, count);
  },
);

test("a worker tells once a second that it lives", async () => {
  const worker = fork(join(import.meta.dirname, "../../dist/cli/worker.js"), {
    execArgv: [importing("quick-intervals.mjs")],
  });
  try {
    const messages: { type: string; ms?: number }[] = [];
    worker.on("message", (message) => messages.push(message as { type: string }));
    await eventually(() => expect(messages.map(({ type }) => type)).toContain("alive"));
    const before = messages[messages.findIndex(({ type }) => type === "alive") - 1];
    expect(before).toEqual({ type: "waited", ms: 1000 });
  } finally {
    worker.kill("SIGKILL");
  }
});

/** Its step goes on since so long before its start. */
async function serveInStep(seconds: number, ...args: string[]): Promise<ServedCommand> {
  process.env["NODE_OPTIONS"] = importing("slow-step.mjs");
  process.env["FERMATA_TEST_STEP_AGE"] = String(seconds * 1000);
  return await serveCommand("--store=none", ...args);
}

test.each([
  [10, 200, "ok", 200, "ready"],
  [70, 200, "ok", 503, "busy"],
  [150, 503, "hung", 503, "busy"],
])(
  "--process-timeout step=100, a step of %i s, and nobody who kills it: /health %i %s, /ready %i %s",
  async (seconds, ...expected) => {
    server = await serveInStep(seconds, "--process-timeout=step=100", "--no-supervise");
    const said = [];
    for (const path of ["/health", "/ready"]) {
      const reply = await fetch(server.url + path);
      said.push(reply.status, ((await reply.json()) as { status: string }).status);
    }
    expect(said).toEqual(expected);
  },
);

test("a worker whose step takes longer than that is killed, and started again", async () => {
  server = await serveInStep(0, "--process-timeout=step=1");
  const worker = await workerOf(server, 1);
  await workerOf(server, 2);
  expect(server.log()).toContain(
    `"pid":${worker},"thread":"inference","seconds":1,"msg":"the worker hangs and is killed"`,
  );
});

/** Of a process: its state (T: stopped) and its session. */
function statusOf(pid: number): { state: string; session: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return { state: fields[0]!, session: Number(fields[3]) };
}

test.runIf(process.platform === "linux")(
  "Ctrl-Z stops the worker, which has a session of its own, and its streams go on afterwards",
  async () => {
    server = await serveCommand("--store=none");
    const worker = await workerOf(server, 1);
    const supervisor = server.process.pid!;
    expect(statusOf(worker).session).toBe(worker);
    expect(statusOf(supervisor).session).not.toBe(worker);
    const stream = await endlessStream(server);
    process.kill(supervisor, "SIGTSTP");
    await eventually(() => {
      expect(statusOf(supervisor).state).toBe("T");
      expect(statusOf(worker).state).toBe("T");
    });
    const before = stream.text().length;
    process.kill(supervisor, "SIGCONT");
    await eventually(() => expect(stream.text().length).toBeGreaterThan(before));
    stream.leave();
    await expect(stream.ended).rejects.toThrow();
    expect(server.log()).not.toContain("hangs");
  },
);
