// A worker that hangs is killed and started again: its streams end as those of a dead one.
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
  await server?.stop("SIGKILL");
  server = undefined;
});

const blocker = pathToFileURL(join(import.meta.dirname, "../fixtures/block-event-loop.mjs")).href;

test.each([
  ["is stopped", "SIGSTOP", "worker stopped (SIGSTOP) amid"],
  ["blocks its event loop", "SIGUSR2", "event loop of the worker blocked"],
] as const)(
  "a worker that %s: killed, its stream told, and the service is back",
  async (_name, signal, fault) => {
    process.env["NODE_OPTIONS"] = `--import=${blocker}`;
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
