/** The configuration of `fermata serve`, as the command reads it. */

import { serveCommand } from "../../src/cli/command.ts";
import { configOf } from "../../src/cli/config.ts";
import type { ServeConfig } from "../../src/cli/options.ts";
import { parseArguments } from "../../src/cli/parse-arguments.ts";

/** @param args what stands behind `serve`. @throws FermataError invalid_option */
export function serveConfig(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  cwd: string,
): ServeConfig {
  return configOf(parseArguments(args, serveCommand, cwd).values, env, cwd);
}
