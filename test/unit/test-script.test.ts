// What `npm test` says before its first check, and what it takes.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const path = (name: string) => fileURLToPath(new URL(`../../scripts/${name}`, import.meta.url));
const { describeProcessor } = (await import(path("checks/processor.mjs"))) as {
  describeProcessor(model: string, count: number, cpuinfo: string): string;
};

test.each([
  [
    "flags\t\t: fpu sse2 avx avx2 bmi2 fma f16c",
    "processor: AMD EPYC 7543, 2 logical; avx avx2 fma f16c",
  ],
  [
    "model name\t: x\nflags\t\t: avx512f amx_int8 avx512_vnni\nflags\t\t: none",
    "processor: AMD EPYC 7543, 2 logical; avx512f avx512_vnni amx_int8",
  ],
  ["Features\t: fp asimd asimddp i8mm", "processor: AMD EPYC 7543, 2 logical; asimd asimddp i8mm"],
  ["", "processor: AMD EPYC 7543, 2 logical; instruction sets unknown"],
])("names what chooses the kernels: %j", (cpuinfo, line) => {
  expect(describeProcessor("AMD EPYC 7543 ", 2, cpuinfo)).toBe(line);
});

// Only calls that end before anything is set up.
test.each([
  [["unt"], "No check is named unt. There are: format,"],
  [["unit", "lnt"], "No check is named lnt."],
  [["lint", "-t", "name"], "No check is named -t."],
  [["unit", "contract", "-t", "name"], "No check is named -t."],
])("npm test -- %j is refused", (args, message) => {
  const { stderr, stdout, status } = spawnSync(process.execPath, [path("test.mjs"), ...args], {
    encoding: "utf8",
  });
  expect(stderr + stdout).toContain(message);
  expect(status).toBe(2);
});

test("each lane of vitest has a script, which sets up what the lane needs", async () => {
  const { scripts } = JSON.parse(await readFile(path("../package.json"), "utf8"));
  const lanes = "unit contract integrity model e2e faults browser inspector".split(" ");
  expect(lanes.map((lane) => scripts[`test:${lane}`])).toEqual(
    lanes.map((lane) => `node scripts/test.mjs ${lane}`),
  );
});

test("temporary files of tests lie in the folder of the run, which goes with it", () => {
  expect(basename(tmpdir())).toMatch(/^fermata-tests-/);
});

test("CONTRIBUTING.md has the checks in their order, and scripts and files that there are", async () => {
  const guide = await readFile(path("../CONTRIBUTING.md"), "utf8");
  const { stderr } = spawnSync(process.execPath, [path("test.mjs"), "none"], { encoding: "utf8" });
  const checks = /There are: (.*)\./u.exec(stderr)?.[1]?.split(", ");
  const [, told] = /^The checks, in order: (.*)\.$/mu.exec(guide)!;
  expect(told!.split(", ").map((name) => name.replaceAll("`", ""))).toEqual(checks);

  const { scripts } = JSON.parse(await readFile(path("../package.json"), "utf8"));
  const named = [...guide.matchAll(/`npm run ([\w:]+)/gu)].map(([, name]) => name);
  expect(named.filter((name) => !(name! in scripts))).toEqual([]);
  const lanes = /`npm run test:unit` \((.*?)\)/u.exec(guide)![1]!.match(/\w+/gu)!;
  expect(lanes.filter((lane) => !(`test:${lane}` in scripts))).toEqual([]);

  const files = guide.match(/(?<=`)(?:src|scripts|test|docs|native|examples|ui)\/[\w./-]+(?=`)/gu)!;
  expect(files.filter((file) => !existsSync(path(`../${file}`)))).toEqual([]);
});
