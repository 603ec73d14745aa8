/** What the tools take of the prompt, for the banner and the log of a server that has some. */

import type { Logger } from "pino";
import type { Chat } from "../chat/chat.ts";
import type { CacheInfo } from "../engine/types.ts";
import { tokensByServer, type ToolTokens, toolTokens } from "../server/answer/tool-tokens.ts";
import type { ToolProvider } from "../tools/types.ts";

/** Logs and returns it; null: there are no tools, or the template cannot say. */
export async function toolShare(
  chat: Pick<Chat, "countPromptTokens">,
  host: Pick<ToolProvider, "tools">,
  { cellsPerSequence: context }: CacheInfo,
  log: Logger,
): Promise<string | null> {
  const tokens = await toolTokens(chat, host.tools());
  if (tokens === null || tokens.total === 0) return null;
  const details = { tokens: tokens.total, context, servers: tokens.byServer };
  const text = `the tools take ${tokens.total} of ${context} tokens (${tokensByServer(tokens)})`;
  if (!takesMost(tokens, context)) {
    log.info(details, "tokens of the tools");
    return text;
  }
  const advice =
    'choose fewer with "tools": {"allow": […]} in the MCP configuration, or take a larger --ctx-size';
  log.warn(details, `the tools take most of the context: ${advice}`);
  return `${text}; ${advice}`;
}

/** Little room is left for a conversation. */
function takesMost({ total }: ToolTokens, contextSize: number): boolean {
  return total > contextSize / 2;
}
