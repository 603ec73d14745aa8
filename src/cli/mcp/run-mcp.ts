/** `fermata mcp`: the model and the agents of a server as an MCP server on standard input and output. */

import { McpStdioBridge } from "../../mcp/server/stdio-bridge.ts";
import { connect } from "../chat/connect.ts";
import type { CommandContext, ParsedArguments } from "../commands/command.ts";
import { mcpOptions } from "../commands/commands.ts";
import { ownOptions } from "../options/option-values.ts";
import { onFirstSignal } from "../signals.ts";

/** Until the client closes standard input. Resolves to the exit code. @throws FermataError */
export async function runMcp(
  { values, operands }: ParsedArguments,
  context: CommandContext,
): Promise<number> {
  if (operands.length > 0) {
    const { runLogin } = await import("./run-login.ts");
    return await runLogin({ values, operands }, context);
  }
  const { url: server } = ownOptions(mcpOptions, values, context);
  const note = (text: string): void => context.err(`fermata: ${text}\n`);
  const { api, close } = await connect(server, values, context, note);
  const { url, headers } = api;
  const { stdin: input, stdout: output } = process;
  const bridge = new McpStdioBridge({ url, headers, input, output, note });
  const off = onFirstSignal(["SIGINT", "SIGTERM", "SIGHUP"], () => void input.destroy());
  try {
    await bridge.run();
  } finally {
    await close();
    off();
  }
  return 0;
}
