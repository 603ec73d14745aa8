/** The configuration of `fermata serve`, as the command reads it. */

import { commands } from "../../src/cli/commands/commands.ts";
import { configOf } from "../../src/cli/options/config.ts";
import type { ServeConfig } from "../../src/cli/options/serve-options.ts";
import { parseArguments } from "../../src/cli/options/parse-arguments.ts";

/** @param args what stands behind `serve`. @throws FermataError invalid_option */
export function serveConfig(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  cwd: string,
): ServeConfig {
  const serve = commands.find(({ name }) => name === "serve")!;
  return configOf(parseArguments(args, serve, cwd).values, env, cwd);
}
