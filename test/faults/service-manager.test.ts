// `fermata serve` under systemd: what it tells, and the unit of packaging/. A fake plays systemd's part.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";

const has = (program: string): boolean =>
  spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;
const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "fermata-systemd-"));

let server: ServedCommand | undefined;
afterEach(async () => {
  for (const name of ["NOTIFY_SOCKET", "WATCHDOG_USEC"]) delete process.env[name];
  await server?.stop("SIGKILL");
  server = undefined;
  rmSync(folder, { recursive: true, force: true });
});

const listener = `
import socket, sys
it = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
it.bind(sys.argv[1])
print("listening", flush=True)
while True: print(it.recv(4096).decode().replace("\\n", " "), flush=True)
`;

test.runIf(has("systemd-notify") && has("python3"))(
  "READY once it serves, WATCHDOG again and again, STOPPING at SIGTERM; SIGHUP reopens the audit log",
  async () => {
    const socket = join(folder, "notify");
    const systemd = spawn("python3", ["-c", listener, socket]);
    let told = "";
    systemd.stdout.on("data", (text) => (told += String(text)));
    await eventually(() => expect(told).toContain("listening"));
    Object.assign(process.env, { NOTIFY_SOCKET: socket, WATCHDOG_USEC: "1000000" });
    const log = join(folder, "audit.jsonl");
    server = await serveCommand("--store=none", `--audit-log=${log}`);
    await eventually(() => expect(told.match(/WATCHDOG=1/g)?.length).toBeGreaterThan(2));
    expect(told.match(/(READY|WATCHDOG|STOPPING)=1/g)![0]).toBe("READY=1");
    expect(told).not.toContain("STOPPING");
    copyFileSync(log, `${log}.1`);
    rmSync(log);
    server.process.kill("SIGHUP");
    await eventually(() => expect(readFileSync(log, "utf8")).toBe(""));
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    expect(await server.stop("SIGTERM")).toBe(0);
    await eventually(() => expect(told).toContain("STOPPING=1"));
    systemd.kill();
    await once(systemd, "exit");
  },
);

test.runIf(has("systemd-analyze"))("the unit is one", () => {
  // Verified without the program: it is not installed here.
  const unit = readFileSync(join(root, "packaging/fermata.service"), "utf8");
  const path = join(mkdtempSync(join(tmpdir(), "fermata-unit-")), "fermata.service");
  writeFileSync(path, unit);
  const said = execFileSync("systemd-analyze", ["verify", "--man=no", path], { encoding: "utf8" });
  expect(said).toBe("");
  expect(unit).toContain("KillMode=mixed");
});
