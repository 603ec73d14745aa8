/** All MCP servers as one source of tools. */

import { setTimeout } from "node:timers/promises";
import type { McpServerConfig } from "./settings.ts";
import type { Tool, ToolProvider, ToolServerState } from "../tools/types.ts";
import { defaultConnectTimeoutMs, McpConnection, type McpConnectionOptions } from "./connection.ts";
import { nameTools } from "./names.ts";
import { describeError, startErrorLength } from "./text.ts";
import { McpTool } from "./tool.ts";

export interface McpHostOptions extends Omit<McpConnectionOptions, "fetch" | "onToolsChanged"> {
  refreshMs?: number | undefined;
  toolTimeoutMs?: number | undefined;
  /** Of a result's text. Default 1 MiB. */
  maxResultBytes?: number | undefined;
  /** How long `start` waits for a slow server. Requests wait for it up to the connect timeout. */
  startPatienceMs?: number | undefined;
  /** A server that cannot start fails `start`. Otherwise it is logged and tried again. */
  mustStart?: boolean | undefined;
}

export class McpHost implements ToolProvider {
  readonly #connections: McpConnection[];
  readonly #options: McpHostOptions;
  #tools: Tool[] | null = null;
  #refreshTimer: NodeJS.Timeout | undefined;
  /** Every server has started, or failed to. */
  #firstTries: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(servers: readonly McpServerConfig[], options: McpHostOptions) {
    this.#options = options;
    this.#connections = servers.map(
      (server) =>
        new McpConnection(server, {
          ...options,
          onToolsChanged: () => {
            this.#tools = null;
          },
        }),
    );
  }

  /**
   * Connects all servers side by side. One that is slow comes later, unless it must start.
   * @throws FermataError mcp_start_failed, if `mustStart`
   */
  async start(): Promise<void> {
    const { log, mustStart = false, startPatienceMs = 5000 } = this.#options;
    for (const { id, config } of this.#connections) {
      const { ignoredKeys = [] } = config;
      if (ignoredKeys.length > 0)
        log.warn({ server: id, keys: ignoredKeys }, "MCP configuration has keys without effect");
    }
    const starts = Promise.allSettled(
      this.#connections.map((connection) => this.#startOne(connection)),
    );
    this.#firstTries = starts;
    const settled = await (mustStart
      ? starts
      : Promise.race([starts, setTimeout(startPatienceMs, [], { ref: false })]));
    const failed = settled.find((start) => start.status === "rejected");
    if (failed !== undefined) {
      await this.close();
      throw failed.reason;
    }
    if (this.#closed) return;
    for (const { id, state } of this.#connections) {
      if (state === "starting") log.warn({ server: id }, "MCP server takes its time");
    }
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

  servers(): ToolServerState[] {
    const tools = this.tools();
    return this.#connections.map(({ id, transport, state, error }) => ({
      name: id,
      transport,
      state,
      error,
      tools: tools.filter(({ server }) => server === id),
    }));
  }

  async missing(): Promise<string[]> {
    const isStarting = this.#connections.some(({ state }) => state === "starting");
    const { connectTimeoutMs = defaultConnectTimeoutMs } = this.#options;
    if (isStarting)
      await Promise.race([this.#firstTries, setTimeout(connectTimeoutMs, null, { ref: false })]);
    return this.#connections
      .filter(({ state, tools }) => state !== "ready" && tools.length === 0)
      .map(({ id }) => id);
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
      connection.keepTrying(describeError(error, startErrorLength));
      return;
    }
    const milliseconds = Math.round(performance.now() - start);
    log.info(
      { server: connection.id, tools: connection.tools.length, milliseconds },
      "MCP server ready",
    );
  }

  #buildTools(): Tool[] {
    const { toolTimeoutMs: timeoutMs = 60_000, maxResultBytes = 1024 ** 2 } = this.#options;
    const byId = new Map(this.#connections.map((connection) => [connection.id, connection]));
    const named = nameTools(this.#connections, this.#connections.length > 1);
    return named.map(
      ({ exposed, serverId, tool }) =>
        new McpTool(exposed, tool, byId.get(serverId)!, { timeoutMs, maxResultBytes }),
    );
  }
}
