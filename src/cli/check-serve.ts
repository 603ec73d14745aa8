/** What `fermata serve` would refuse at once, for who has no engine yet. */

import { checkGguf } from "../engine/gguf-check.ts";
import { withAccess } from "./access.ts";
import type { CommandContext } from "./command.ts";
import { configOf } from "./config.ts";
import { mcpServers } from "./mcp-servers.ts";
import { chooseModel } from "./model-choice.ts";
import { modelsDirectory } from "./package-files.ts";
import type { ParsedArguments } from "./parse-arguments.ts";
import { assertPortFree } from "./port.ts";

/** Options, port, MCP servers and model file, but nothing is started. @throws FermataError */
export async function checkServe(
  { values }: ParsedArguments,
  { env, cwd }: CommandContext,
): Promise<void> {
  const config = withAccess(configOf(values, env, cwd));
  await assertPortFree(config.port, config.host);
  mcpServers(config);
  if (config.hf === undefined) checkGguf(chooseModel(config.model, modelsDirectory).path);
}
