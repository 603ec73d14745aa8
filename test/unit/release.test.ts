// What the packages of a release ask the registry for.
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const scripts = join(import.meta.dirname, "../../scripts/release");

function optionalDependencies(...others: string[]): string[] {
  const code = `
    const { mainManifest } = await import(${JSON.stringify(join(scripts, "packages.mjs"))});
    console.log(JSON.stringify(mainManifest(${JSON.stringify(others)})));`;
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", code]);
  return Object.keys(JSON.parse(String(output)).optionalDependencies);
}

const here = `fermata-engine-${process.platform}-${process.arch}`;

test("of addons, only that of this platform and those that are given", () => {
  expect(optionalDependencies()).toEqual([here]);
  const other = process.platform === "darwin" ? "linux-x64" : "darwin-arm64";
  expect(optionalDependencies(other)).toEqual([here, `fermata-engine-${other}`]);
});

test("a platform without packages is refused before anything is built", () => {
  const args = [join(scripts, "release.mjs"), "--platform", "plan9-x64"];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(status).toBe(2);
  expect(stderr).toContain("--platform must be one of linux-x64");
});
