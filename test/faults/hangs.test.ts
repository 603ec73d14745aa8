// A worker that hangs is killed and started again: its streams end as those of a dead one.
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { times } from "./support/injections.ts";
import { endlessStream, workerOf } from "./support/served.ts";

let server: ServedCommand | undefined;
afterEach(async () => {
  delete process.env["NODE_OPTIONS"];
  await server?.stop("SIGKILL");
  server = undefined;
});

const blocker = pathToFileURL(join(import.meta.dirname, "../fixtures/block-event-loop.mjs")).href;

test.each([
  ["is stopped", "SIGSTOP"],
  ["blocks its event loop", "SIGUSR2"],
] as const)(
  "a worker that %s: killed, its stream told, and the service is back",
  async (_name, signal) => {
    process.env["NODE_OPTIONS"] = `--import=${blocker}`;
    server = await serveCommand("--store=none", "--process-timeout=loop=12");
    for (let count = 1; count <= times(1, 20); count++) {
      const worker = await workerOf(server, count);
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
      await workerOf(server, count + 1);
      await eventually(async () => expect((await fetch(`${server!.url}/ready`)).status).toBe(200));
    }
  },
);
