#!/usr/bin/env node
// node scripts/checks/format-cpp.mjs [--write]: C++ by .clang-format, with the formatter from npm.
import { readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { format } from "@wasm-fmt/clang-format";
import { root } from "../setup/paths.mjs";
import { filesUnder } from "../setup/stamp.mjs";

const write = process.argv.includes("--write");
const style = readFileSync(join(root, ".clang-format"), "utf8");
const files = ["native", "test/native"]
  .flatMap((directory) => filesUnder(join(root, directory)))
  .filter((file) => /\.(cpp|h)$/.test(file));

let changed = 0;
for (const file of files) {
  const before = readFileSync(file, "utf8");
  const after = format(before, file, style);
  if (after === before) continue;
  changed++;
  if (write) writeFileSync(file, after);
  process.stdout.write(`${write ? "formatted" : "not formatted"}: ${relative(root, file)}\n`);
}
if (changed > 0 && !write) process.exitCode = 1;
