/** One stdio MCP server: started, listened to, started again when it dies. */

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { FermataError } from "../errors.ts";
import type { ToolResult } from "../tools/types.ts";
import type { McpServerConfig } from "./mcp-config.ts";
import { mcpResultToText } from "./mcp-content.ts";
import { mcpEnvironment } from "./mcp-environment.ts";
import type { McpLogger } from "./mcp-logger.ts";
import { type McpToolInfo, listTools } from "./mcp-tool-list.ts";
import { McpTransport } from "./mcp-transport.ts";

export interface McpConnectionOptions {
  log: McpLogger;
  version: string;
  connectTimeoutMs: number;
  /** First wait before a reconnect; doubles up to `maxReconnectDelayMs`. */
  reconnectDelayMs: number;
  maxReconnectDelayMs: number;
  onToolsChanged: () => void;
}

/** While a server restarts its tools stay offered (the prompt's prefix stays valid); after so many failures they go. */
const reconnectsBeforeWithdrawal = 3;

/** The SDK compiles every output schema at every listing; the model reads text, so none is needed. */
const noOutputValidation = {
  getValidator<T>() {
    return (input: unknown) => ({
      valid: true as const,
      data: input as T & {},
      errorMessage: undefined,
    });
  },
};

export class McpConnection {
  readonly id: string;
  readonly #config: McpServerConfig;
  readonly #options: McpConnectionOptions;
  /** Of the latest start, maybe one under way. */
  #transport: McpTransport | null = null;
  /** Set while the server is up and its tools are known. */
  #client: Client | null = null;
  #tools: McpToolInfo[] = [];
  #failures = 0;
  #reconnectTimer: NodeJS.Timeout | undefined;
  #connecting: Promise<void> | null = null;
  #closed = false;

  constructor(config: McpServerConfig, options: McpConnectionOptions) {
    this.id = config.id;
    this.#config = config;
    this.#options = options;
  }

  get isConnected(): boolean {
    return this.#client !== null;
  }

  /** Sorted by name, so that the prompt is the same whatever order the server lists. */
  get tools(): readonly McpToolInfo[] {
    return this.#tools;
  }

  /** Starts the server and lists its tools. @throws FermataError mcp_start_failed */
  connect(): Promise<void> {
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  /** Tries again later, again and again, with growing pauses. For a server that could not start. */
  keepTrying(): void {
    if (this.#closed || this.#client !== null || this.#reconnectTimer !== undefined) return;
    const delay = Math.min(
      this.#options.reconnectDelayMs * 2 ** this.#failures,
      this.#options.maxReconnectDelayMs,
    );
    this.#reconnectTimer = setTimeout(() => void this.#reconnect(), delay);
    this.#reconnectTimer.unref();
  }

  /** Lists the tools anew. A failure keeps the old list. */
  async refresh(): Promise<void> {
    const client = this.#client;
    if (client === null) return;
    try {
      const tools = await listTools(client, this.#options.connectTimeoutMs);
      if (client === this.#client) this.#setTools(tools);
    } catch (error) {
      if (!this.#closed)
        this.#options.log.warn(
          { server: this.id, error: describe(error) },
          "MCP tool list not refreshed",
        );
    }
  }

  /**
   * Runs a tool. Time-out and `signal` send the server a cancellation.
   * @throws whatever the protocol reports; results with `isError` return.
   */
  async callTool(
    name: string,
    args: Record<string, unknown>,
    options: { signal: AbortSignal; timeoutMs: number },
  ): Promise<ToolResult> {
    const client = this.#client;
    if (client === null) {
      throw new FermataError(
        "mcp_start_failed",
        `MCP server "${this.id}" is not running; it is being restarted.`,
      );
    }
    // The SDK leaves its listener on the signal, which may live as long as the whole request.
    const controller = new AbortController();
    const abort = (): void => controller.abort(options.signal.reason);
    options.signal.addEventListener("abort", abort, { once: true });
    if (options.signal.aborted) abort();
    try {
      const result = await client.callTool({ name, arguments: args }, undefined, {
        signal: controller.signal,
        timeout: options.timeoutMs,
      });
      return mcpResultToText(result);
    } finally {
      options.signal.removeEventListener("abort", abort);
    }
  }

  /** Ends the server: closed input first, killed after a second. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#reconnectTimer);
    await this.#transport?.close().catch(() => {});
    this.#client = null;
  }

  async #connect(): Promise<void> {
    const { command, args, env, cwd } = this.#config;
    if (this.#closed)
      throw new FermataError("mcp_start_failed", `MCP server "${this.id}" is closed.`);
    const environment = mcpEnvironment(process.env, env);
    const transport = new McpTransport({
      command,
      args,
      env: environment,
      stderr: "pipe",
      ...(cwd === undefined ? {} : { cwd }),
    });
    this.#transport = transport;
    this.#logStandardError(transport);
    const client = new Client(
      { name: "fermata", version: this.#options.version },
      {
        jsonSchemaValidator: noOutputValidation,
        listChanged: { tools: { autoRefresh: false, onChanged: () => void this.refresh() } },
      },
    );
    client.onerror = (error) =>
      this.#options.log.debug({ server: this.id, error: error.message }, "MCP transport error");
    try {
      await client.connect(transport, { timeout: this.#options.connectTimeoutMs });
      const tools = await listTools(client, this.#options.connectTimeoutMs);
      client.onclose = () => this.#onClose(client);
      // It may have died, or this may have been closed, since its last answer.
      if (transport.pid === null || this.#closed)
        throw new FermataError("mcp_start_failed", "it ended at once");
      this.#client = client;
      this.#failures = 0;
      this.#setTools(tools);
    } catch (cause) {
      await transport.close().catch(() => {});
      throw new FermataError(
        "mcp_start_failed",
        `MCP server "${this.id}" (${command}) did not start: ${describe(cause)}.`,
        { cause },
      );
    }
  }

  #setTools(tools: McpToolInfo[]): void {
    if (JSON.stringify(tools) === JSON.stringify(this.#tools)) return;
    this.#tools = tools;
    this.#options.onToolsChanged();
  }

  #onClose(client: Client): void {
    if (client !== this.#client) return;
    this.#client = null;
    if (this.#closed) return;
    this.#options.log.warn({ server: this.id }, "MCP server ended, starting it again");
    this.keepTrying();
  }

  async #reconnect(): Promise<void> {
    this.#reconnectTimer = undefined;
    try {
      await this.connect();
      this.#options.log.info({ server: this.id, tools: this.#tools.length }, "MCP server is back");
    } catch (error) {
      this.#failures++;
      this.#options.log.warn(
        { server: this.id, attempt: this.#failures, error: describe(error) },
        "MCP server not started",
      );
      if (this.#failures === reconnectsBeforeWithdrawal) this.#setTools([]);
      this.keepTrying();
    }
  }

  #logStandardError(transport: McpTransport): void {
    transport.stderr?.on("data", (chunk: Buffer) => {
      this.#options.log.debug(
        { server: this.id, stderr: chunk.toString("utf8").trimEnd() },
        "MCP server says",
      );
    });
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
