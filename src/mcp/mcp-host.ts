/** All MCP servers as one source of tools. */

import type { Tool, ToolProvider } from "../tools/types.ts";
import type { McpServerConfig } from "./mcp-config.ts";
import { McpConnection } from "./mcp-connection.ts";
import type { McpLogger } from "./mcp-logger.ts";
import { nameTools } from "./mcp-names.ts";
import { McpTool } from "./mcp-tool.ts";

export interface McpHostOptions {
  log: McpLogger;
  version: string;
  refreshMs?: number | undefined;
  toolTimeoutMs?: number | undefined;
  connectTimeoutMs?: number | undefined;
  reconnectDelayMs?: number | undefined;
  maxReconnectDelayMs?: number | undefined;
  /** A server that cannot start fails `start`. Else it is logged and tried again. */
  mustStart?: boolean | undefined;
}

export class McpHost implements ToolProvider {
  readonly #connections: McpConnection[];
  readonly #options: McpHostOptions;
  #tools: Tool[] | null = null;
  #refreshTimer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(servers: readonly McpServerConfig[], options: McpHostOptions) {
    this.#options = options;
    this.#connections = servers.map(
      (server) =>
        new McpConnection(server, {
          log: options.log,
          version: options.version,
          connectTimeoutMs: options.connectTimeoutMs ?? 30_000,
          reconnectDelayMs: options.reconnectDelayMs ?? 1000,
          maxReconnectDelayMs: options.maxReconnectDelayMs ?? 30_000,
          onToolsChanged: () => {
            this.#tools = null;
          },
        }),
    );
  }

  /** Connects all servers side by side. @throws FermataError mcp_start_failed, if `mustStart` */
  async start(): Promise<void> {
    const starts = await Promise.allSettled(
      this.#connections.map((connection) => this.#startOne(connection)),
    );
    const failed = starts.find((start) => start.status === "rejected");
    if (failed !== undefined) {
      await this.close();
      throw failed.reason;
    }
    if (this.#closed) return;
    this.#refreshTimer = setInterval(() => void this.refresh(), this.#options.refreshMs ?? 30_000);
    this.#refreshTimer.unref();
  }

  /**
   * Servers in the configuration's order, each one's tools by name. The prefix depends on how many
   * servers are configured, not on how many answer now.
   */
  tools(): Tool[] {
    this.#tools ??= this.#buildTools();
    return this.#tools;
  }

  async refresh(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.refresh()));
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#refreshTimer);
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  async #startOne(connection: McpConnection): Promise<void> {
    const { log, mustStart = false } = this.#options;
    const start = performance.now();
    try {
      await connection.connect();
    } catch (error) {
      if (mustStart) throw error;
      log.warn(
        { server: connection.id, error: (error as Error).message },
        "MCP server not started, trying again later",
      );
      connection.keepTrying();
      return;
    }
    const milliseconds = Math.round(performance.now() - start);
    log.info(
      { server: connection.id, tools: connection.tools.length, milliseconds },
      "MCP server ready",
    );
  }

  #buildTools(): Tool[] {
    const byId = new Map(this.#connections.map((connection) => [connection.id, connection]));
    const named = nameTools(this.#connections, this.#connections.length > 1);
    return named.map(
      ({ exposed, serverId, tool }) =>
        new McpTool(exposed, tool, byId.get(serverId)!, this.#options.toolTimeoutMs ?? 60_000),
    );
  }
}
