/** The configuration of `fermata serve`, as the command reads it. */

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { commands } from "../../src/cli/commands/commands.ts";
import { configOf } from "../../src/cli/options/config.ts";
import type { ServeConfig } from "../../src/cli/options/serve-options.ts";
import { parseArguments } from "../../src/cli/options/parse-arguments.ts";

export const emptyFolder = directoryWith({});

/** @param args what stands behind `serve`. @throws FermataError invalid_option */
export function serveConfig(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  cwd: string = emptyFolder,
): ServeConfig {
  const serve = commands.find(({ name }) => name === "serve")!;
  return configOf(parseArguments(args, serve, cwd).values, env, cwd);
}

export function directoryWith(files: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), "fermata-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}
