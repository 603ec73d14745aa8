import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { loadAddon } from "../../../src/native/addon.ts";

let folder: string;
const before = process.env["FERMATA_ADDON"];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fermata-addon-"));
});
afterEach(() => {
  if (before === undefined) delete process.env["FERMATA_ADDON"];
  else process.env["FERMATA_ADDON"] = before;
  rmSync(folder, { recursive: true });
});

function refuse(said: string): void {
  // What the system's loader says, thrown by a file in the addon's place.
  const path = join(folder, "addon.cjs");
  writeFileSync(path, `throw new Error(${JSON.stringify(said)});`);
  process.env["FERMATA_ADDON"] = path;
}

it("an addon that was made on a newer system says so", () => {
  refuse("/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.36' not found (required by x.node)");
  expect(loadAddon).toThrow("needs glibc 2.36 or newer, and this system's is older: build Fermata");
});

it.each([
  ["libvulkan.so.1", /apt-get install libvulkan1\), or compile it for the CPU/u],
  ["libcublas.so.13", /NVIDIA's CUDA libraries, .*--backend cpu/u],
  ["libstdc++.so.6", /Build it: `node scripts\/setup\.mjs`/u],
])("an addon that lacks %s says what to install", (library, remedy) => {
  const said = `${library}: cannot open shared object file: No such file or directory`;
  refuse(said);
  expect(loadAddon).toThrow(
    expect.objectContaining({ code: "addon_missing", message: expect.stringMatching(remedy) }),
  );
  expect(loadAddon).toThrow(said);
});
