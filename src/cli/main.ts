#!/usr/bin/env node
import { runCommandLine } from "./run.ts";

const exitCode = await runCommandLine(process.argv.slice(2), {
  cwd: process.cwd(),
  env: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
});
if (exitCode !== null) process.exitCode = exitCode;
