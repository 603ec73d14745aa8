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

it.each([
  ["libvulkan.so.1", /apt-get install libvulkan1\), or compile it for the CPU/u],
  ["libcublas.so.13", /NVIDIA's CUDA libraries, .*--backend cpu/u],
  ["libstdc++.so.6", /Build it: `node scripts\/setup\.mjs`/u],
])("an addon that lacks %s says what to install", (library, remedy) => {
  // What the system's loader says, thrown by a file in the addon's place.
  const path = join(folder, "addon.cjs");
  const said = `${library}: cannot open shared object file: No such file or directory`;
  writeFileSync(path, `throw new Error(${JSON.stringify(said)});`);
  process.env["FERMATA_ADDON"] = path;
  expect(loadAddon).toThrow(
    expect.objectContaining({ code: "addon_missing", message: expect.stringMatching(remedy) }),
  );
  expect(loadAddon).toThrow(said);
});
