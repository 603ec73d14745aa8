// Clients by the thousand that send or read nothing, and a server that has no descriptors left.
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { times, told } from "./support/injections.ts";
import { endlessStream, post, workerOf } from "./support/served.ts";

let server: ServedCommand | undefined;
let sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
  await server?.stop("SIGKILL");
  server = undefined;
});

const head = (length: number): string =>
  `POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;

function open(sent: string): Socket {
  const socket = connect(Number(new URL(server!.url).port), "127.0.0.1");
  socket.on("error", () => {});
  socket.write(sent);
  sockets.push(socket);
  return socket;
}

const hello = { prompt: "Once", max_tokens: 2 };
const isServed = async (): Promise<void> =>
  expect((await post(server!, "/v1/completions", hello)).status).toBe(200);

const streamed = JSON.stringify({ ...hello, max_tokens: 4000, ignore_eos: true, stream: true });
const crowds: [string, string][] = [
  ["that never end their headers", "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nx: "],
  ["that never end their bodies", `${head(1000)}{"prompt": "`],
  ["that read nothing of their streams", head(streamed.length) + streamed],
];

test.each(crowds)(
  "clients %s: others are answered, and nothing is left of them",
  async (name, sent) => {
    server = await serveCommand("--store=none");
    const worker = await workerOf(server, 1);
    const count = times(300, 1000);
    const before = readdirSync(`/proc/${worker}/fd`).length;
    for (let number = 0; number < count; number++) {
      const socket = open(sent);
      socket.pause();
      if (number % 100 === 99) expect((await fetch(`${server.url}/health`)).status).toBe(200);
    }
    if (!name.includes("streams")) await isServed();
    for (const socket of sockets) socket.destroy();
    await eventually(() =>
      expect(readdirSync(`/proc/${worker}/fd`).length).toBeLessThan(before + 20),
    );
    await eventually(isServed);
    expect(await workerOf(server, 1)).toBe(worker);
    told(`clients ${name}`, count);
  },
);

const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;
const limit = (pid: number, resource: string, soft: number | "unlimited"): void =>
  void execFileSync("prlimit", [`--pid=${pid}`, `--${resource}=${soft}:`]);

test.runIf(hasPrlimit)(
  "no descriptors are left: what is open goes on, and new clients are served once there are some",
  async () => {
    const mcp = `--mcp-args=${join(import.meta.dirname, "../fixtures/mcp/server.mjs")},echo`;
    server = await serveCommand(`--mcp-command=${process.execPath}`, mcp);
    const worker = await workerOf(server, 1);
    const count = times(2, 12);
    let refused = 0;
    for (let round = 0; round < count; round++) {
      const stream = await endlessStream(server);
      const pids = [worker, server.process.pid!];
      for (const pid of pids) limit(pid, "nofile", readdirSync(`/proc/${pid}/fd`).length + 1);
      const asked = Array.from({ length: 20 }, () =>
        fetch(`${server!.url}/health`, { signal: AbortSignal.timeout(2000) }).then(
          ({ status }) => status === 200,
          () => false,
        ),
      );
      refused += (await Promise.all(asked)).filter((wasAnswered) => !wasAnswered).length;
      const length = stream.text().length;
      await eventually(() => expect(stream.text().length).toBeGreaterThan(length));
      for (const pid of pids) limit(pid, "nofile", 4096);
      await eventually(isServed);
      expect(await workerOf(server, 1)).toBe(worker);
      stream.leave();
    }
    expect(refused).toBeGreaterThan(0);
    told("no descriptors are left", 20 * count);
  },
);
