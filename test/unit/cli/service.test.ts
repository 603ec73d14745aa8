/** `fermata service`, with a fake systemctl that records what it is told. */

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { runCommandLine } from "../../../src/cli/run.ts";

const hasAnalyze = spawnSync("systemd-analyze", ["--version"]).status === 0;
let folder: string;
let unit: string;

beforeEach(() => {
  // A name that systemd would read otherwise.
  folder = join(mkdtempSync(join(tmpdir(), "fermata-service-")), '50% of "$HOME"');
  unit = join(folder, "systemd", "user", "fermata.service");
  mkdirSync(join(folder, "bin"), { recursive: true });
  fake(0);
});

function fake(status: number): void {
  const script = `#!/bin/sh\necho "$@" >> "$CALLS"\necho "no bus" >&2\nexit ${status}\n`;
  writeFileSync(join(folder, "bin", "systemctl"), script, { mode: 0o755 });
}

async function run(...args: string[]) {
  let out = "";
  let err = "";
  const path = `${join(folder, "bin")}:${process.env["PATH"]}`;
  const code = await runCommandLine(["service", ...args], {
    cwd: folder,
    env: { XDG_CONFIG_HOME: folder, PATH: path, CALLS: join(folder, "calls") },
    out: (text) => (out += text),
    err: (text) => (err += text),
  });
  return { code, out, err };
}

const calls = (): string[] => readFileSync(join(folder, "calls"), "utf8").trim().split("\n");

test("install writes a unit and the options' file, and starts; uninstall takes the unit away", async () => {
  const config = join(folder, "fermata", "fermata.json");
  const { code, out } = await run("install");
  expect(code).toBe(0);
  expect(out).toBe(`${unit}\nOptions: ${config}\n`);
  expect(readFileSync(config, "utf8")).toBe("{}\n");
  expect(statSync(config).mode & 0o777).toBe(0o600);
  expect(calls()).toEqual([
    "--user daemon-reload",
    "--user enable fermata.service",
    // It may run already, as an earlier install left it.
    "--user restart fermata.service",
  ]);
  writeFileSync(config, '{"port": 8001}');
  expect((await run("uninstall")).code).toBe(0);
  expect(calls().slice(3)).toEqual([
    "--user disable --now fermata.service",
    "--user daemon-reload",
  ]);
  expect(existsSync(unit)).toBe(false);
  expect(readFileSync(config, "utf8")).toBe('{"port": 8001}');
});

test("systemd reads the words of the command as they are", async () => {
  const config = join(folder, "mine.json");
  writeFileSync(config, "{}");
  fake(1);
  expect((await run("install", "--config", config, "--no-start")).code).toBe(0);
  expect(existsSync(join(folder, "calls"))).toBe(false);
  const start = /^ExecStart=(.*)$/m.exec(readFileSync(unit, "utf8"))![1]!;
  expect(start).toMatch(/ "serve" "--config" ".*\/50%% of \\"\$\$HOME\\"\/mine\.json"$/);
});

test.runIf(hasAnalyze)("the unit is one", async () => {
  await run("install");
  const said = execFileSync("systemd-analyze", ["--user", "verify", "--man=no", unit], {
    encoding: "utf8",
    env: { ...process.env, XDG_RUNTIME_DIR: folder },
  });
  expect(said).toBe("");
});

test("what systemctl refuses is told with its words, as is what is not there", async () => {
  fake(1);
  expect(await run("install")).toMatchObject({
    code: 2,
    err: expect.stringContaining("systemctl --user daemon-reload failed: no bus"),
  });
  const missing = await run("install", "--config", join(folder, "none.json"));
  expect(missing).toMatchObject({ code: 2, err: expect.stringContaining("There is no") });
  const unknown = await run("instal");
  expect(unknown).toMatchObject({ code: 2, err: expect.stringContaining("install") });
});

test("uninstall of what is not installed", async () => {
  expect(await run("uninstall")).toMatchObject({
    code: 2,
    err: expect.stringContaining(`There is no ${unit}.`),
  });
});
