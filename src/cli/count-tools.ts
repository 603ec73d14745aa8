/** What the tools take of each prompt, told at the start: not by the first request that fails. */

import type { Chat } from "../chat/chat.ts";
import type { Logger } from "pino";
import type { CacheInfo } from "../engine/types.ts";
import { type ToolTokens, toolTokens } from "../server/answer/tool-tokens.ts";
import type { ToolProvider } from "../tools/types.ts";
import { takesMost } from "./banner.ts";

/** Logs and returns it; null: there are no tools, or the template cannot say. */
export async function countTools(
  chat: Pick<Chat, "countPromptTokens">,
  host: Pick<ToolProvider, "tools">,
  { cellsPerSequence: context }: CacheInfo,
  log: Logger,
): Promise<ToolTokens | null> {
  const tokens = await toolTokens(chat, host.tools());
  if (tokens === null || tokens.total === 0) return null;
  const details = {
    tokens: tokens.total,
    context,
    servers: tokens.byServer,
  };
  if (takesMost(tokens, context))
    log.warn(
      details,
      'the tools take most of the context: choose fewer with "tools": {"allow": […]} in the MCP configuration, or take a larger --ctx-size',
    );
  else log.info(details, "tokens of the tools");
  return tokens;
}
