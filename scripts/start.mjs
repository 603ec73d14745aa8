#!/usr/bin/env node
// npm start [-- [--backend B] [subcommand] [server flags]]: sets up what is missing, then serves.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setUp, setUpCommandLine } from "./setup.mjs";
import { nativeIsCurrent } from "./setup/native-build.mjs";
import { takeSetupOptions } from "./setup/options.mjs";
import { distDir } from "./setup/paths.mjs";
import { exitOnSetupError } from "./setup/report.mjs";

/** The compiled command line's module. */
const compiled = (name) => import(pathToFileURL(join(distDir, "cli", name)).href);

let serverArguments;
try {
  const { options, rest } = takeSetupOptions(process.argv.slice(2));
  const namesSubcommand = rest.length > 0 && !rest[0].startsWith("-");
  const asksVersion = ["--version", "-v"].includes(rest[0]);
  serverArguments = namesSubcommand || asksVersion ? rest : ["serve", ...rest];
  if (!nativeIsCurrent(options)) await answerBeforeBuild(serverArguments);
  await setUp(options);
} catch (error) {
  exitOnSetupError(error);
}

// In this process, so that signals reach the server itself.
process.argv = [process.argv[0], join(distDir, "cli", "main.js"), ...serverArguments];
await compiled("main.js");

/** Ends the process at help and at mistakes: nobody waits minutes for a compiler to read of them. */
async function answerBeforeBuild(args) {
  await setUpCommandLine();
  const commandLine = await compiled("run.js");
  const code = await commandLine.answerBeforeBuild(args, {
    cwd: process.cwd(),
    env: process.env,
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
  });
  if (code !== null) process.exit(code);
}
