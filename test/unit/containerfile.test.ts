// packaging/Containerfile: its steps, run by a shell as the image's build runs them, and what the container starts.
import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { withAccess } from "../../src/cli/access.ts";
import { userFolder } from "../../src/cli/folders.ts";
import { runCommandLine } from "../../src/cli/run.ts";
import { serveConfig } from "../support/serve-config.ts";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "fermata-image-"));
const at = (name: string): string => join(folder, name);
afterAll(() => rmSync(folder, { recursive: true }));

const steps = readFileSync(join(root, "packaging/Containerfile"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line) => {
    const [, word = "", rest = ""] = /^(\w+) (.*)$/.exec(line)!;
    return { word, rest };
  });
const all = (word: string): string[] =>
  steps.filter((step) => step.word === word).map(({ rest }) => rest);
const only = (word: string): string => {
  const found = all(word);
  expect(found).toHaveLength(1);
  return found[0]!;
};

/** Programs that write their arguments into a file, and do no more. */
function fakePrograms(...names: string[]): string {
  const bin = at("bin");
  mkdirSync(bin);
  for (const name of names) {
    writeFileSync(join(bin, name), `#!/bin/sh\necho ${name} "$@" >> ${at("done")}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return bin;
}

/** A package with this program, where COPY puts those of the release. */
function pack(name: string, bin: string | null): void {
  const source = mkdtempSync(at("source-"));
  mkdirSync(join(source, "package"));
  const manifest = { name, version: "1.2.3", ...(bin !== null && { bin: "main.js" }) };
  writeFileSync(join(source, "package", "package.json"), JSON.stringify(manifest));
  if (bin !== null) writeFileSync(join(source, "package", "main.js"), bin);
  execFileSync("tar", ["-czf", join(at("packages"), `${name}.tgz`), "-C", source, "package"]);
}

test("its steps install an init and the packages, in a shell; one that fails stops the build", () => {
  mkdirSync(at("packages"));
  pack("fermata", '#!/usr/bin/env node\nconsole.log("1.2.3")');
  pack("fermata-addon", null);
  const copied = only("COPY").split(" ").at(-1)!.replace(/\/$/, "");
  const prefix = at("prefix");
  const path = [fakePrograms("apt-get", "rm"), join(prefix, "bin"), process.env["PATH"]].join(":");
  const env = { PATH: path, HOME: folder, npm_config_prefix: prefix, npm_config_offline: "true" };
  const run = (step: string) =>
    spawnSync("sh", ["-c", step.replaceAll(copied, at("packages"))], { env, encoding: "utf8" });
  const [init = "", install = ""] = all("RUN");
  expect(run(init)).toMatchObject({ status: 0, stderr: "" });
  const installed = run(install);
  expect(installed, installed.stderr).toMatchObject({ status: 0 });
  expect(installed.stdout.trim().split("\n").at(-1)).toBe("1.2.3");
  expect(readFileSync(at("done"), "utf8").trim().split("\n")).toEqual([
    "apt-get update",
    "apt-get install -y --no-install-recommends tini",
    expect.stringMatching(/^rm -rf \/var\/lib\/apt\/lists\//),
    `rm -r ${at("packages")}`,
  ]);
  rmSync(at("packages"), { recursive: true });
  expect(run(install).status).not.toBe(0);
});

test("it copies what the release makes, for a Node that Fermata runs on", () => {
  const release = readFileSync(join(root, "scripts/release/release.mjs"), "utf8");
  expect(only("COPY")).toMatch(/^build\/release\/\*\.tgz /);
  expect(release).toMatch(/build\/release|"build", "release"/);
  const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const major = Number(/node:(\d+)-/.exec(only("FROM"))![1]);
  expect(major).toBeGreaterThanOrEqual(Number(/>=(\d+)/.exec(engines.node)![1]));
});

test("the container serves on the port that it exposes, with a key only", async () => {
  const [init, , program, ...rest] = JSON.parse(only("ENTRYPOINT")) as string[];
  expect([init, program, rest]).toEqual(["tini", "fermata", []]);
  const [command, ...args] = JSON.parse(only("CMD")) as string[];
  expect(command).toBe("serve");
  let err = "";
  const context = { cwd: folder, env: {}, out: () => {}, err: (text: string) => (err += text) };
  expect(await runCommandLine([command!, ...args], context)).toBe(2);
  expect(err).toMatch(/--host 0\.0\.0\.0 is reached by other machines and there is no key/);
  const keyed = withAccess(serveConfig(args, { FERMATA_API_KEY: "k" }, folder));
  expect(keyed).toMatchObject({ host: "0.0.0.0", port: Number(only("EXPOSE")), apiKey: ["k"] });
});

test("what it keeps lies in the volume, which its user may write", () => {
  const home = only("WORKDIR");
  expect([only("USER"), home]).toEqual(["node", "/home/node"]);
  const volume = only("VOLUME");
  for (const purpose of ["config", "data", "cache", "state"] as const)
    expect(userFolder(purpose, {}, "linux", home).startsWith(`${volume}/`)).toBe(true);
});
