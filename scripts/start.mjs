#!/usr/bin/env node
// npm start [-- [--backend B] [subcommand] [server flags]]: sets up what is missing, then serves.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { setUp } from "./setup.mjs";
import { takeSetupOptions } from "./setup/options.mjs";
import { distDir } from "./setup/paths.mjs";
import { exitOnSetupError } from "./setup/report.mjs";

let serverArguments;
try {
  const { options, rest } = takeSetupOptions(process.argv.slice(2));
  await setUp(options);
  const namesSubcommand = rest.length > 0 && !rest[0].startsWith("-");
  serverArguments = namesSubcommand ? rest : ["serve", ...rest];
} catch (error) {
  exitOnSetupError(error);
}

// In this process, so that signals reach the server itself.
const main = join(distDir, "cli", "main.js");
process.argv = [process.argv[0], main, ...serverArguments];
await import(pathToFileURL(main).href);
