#!/usr/bin/env node
import { runCommandLine } from "./run.ts";

// A reader that has read enough leaves (`fermata store export | head`), and so does a terminal that is closed. What
// would follow is dropped.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE" && !stream.isTTY) throw error;
  });

const exitCode = await runCommandLine(process.argv.slice(2), {
  cwd: process.cwd(),
  env: process.env,
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
});
if (exitCode !== null) process.exitCode = exitCode;
