/** MCP servers as the options name them. */

import type { McpServerConfig } from "../mcp/mcp-settings.ts";
import { mcpServerFromCommand, readMcpConfig } from "../mcp/mcp-config.ts";
import type { McpHost } from "../mcp/mcp-host.ts";
import type { McpLogger } from "../mcp/mcp-logger.ts";
import type { ServerConnector } from "../tools/types.ts";
import type { ServeConfig } from "./options.ts";
import { packageVersion } from "./package-files.ts";

/** @throws FermataError mcp_config_invalid */
export function mcpServers(config: ServeConfig): McpServerConfig[] {
  if (config.mcpConfig !== undefined) return readMcpConfig(config.mcpConfig);
  if (config.mcpCommand !== undefined)
    return [mcpServerFromCommand(config.mcpCommand, config.mcpArgs)];
  return [];
}

/** The MCP SDK takes as long to import as all the rest: only who needs it waits for it. */
export async function createMcpHost(
  config: ServeConfig,
  servers: McpServerConfig[],
  log: McpLogger,
): Promise<McpHost> {
  const { McpHost } = await import("../mcp/mcp-host.ts");
  return new McpHost(servers, {
    ...limitsOf(config),
    log,
    version: packageVersion(),
    refreshMs: config.mcpToolRefreshSeconds * 1000,
    // Whoever names one server on the command line wants that one.
    mustStart: config.mcpCommand !== undefined,
  });
}

/** Undefined: requests may name none of their own. */
export async function requestedServers(
  config: ServeConfig,
  log: McpLogger,
): Promise<ServerConnector | undefined> {
  if (!config.allowRequestMcp) return undefined;
  const { requestServerConnector } = await import("../mcp/mcp-request-server.ts");
  return requestServerConnector({ ...limitsOf(config), log, version: packageVersion() });
}

function limitsOf({ toolTimeout, maxToolOutputBytes }: ServeConfig) {
  return {
    // The tool loop's own time-out comes first and says so; this one is the backstop.
    toolTimeoutMs: toolTimeout.silence * 1000 + 1000,
    maxResultBytes: maxToolOutputBytes,
  };
}
