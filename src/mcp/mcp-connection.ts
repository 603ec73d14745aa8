/** One stdio MCP server: started, listened to, started again when it dies. */

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { FermataError } from "../errors.ts";
import type { ToolResult } from "../tools/types.ts";
import type { McpServerConfig } from "./mcp-config.ts";
import { mcpResultToText } from "./mcp-content.ts";
import { mcpEnvironment } from "./mcp-environment.ts";
import type { McpLogger } from "./mcp-logger.ts";

export interface McpToolInfo {
  name: string;
  description?: string | undefined;
  inputSchema: { [key: string]: unknown };
}

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
const maxToolPages = 100;
const killAfterMs = 1000;

/** The SDK compiles every output schema at every listing; the model reads text, so none is needed. */
const noOutputValidation = {
  getValidator: <T>() => (input: unknown) => ({ valid: true as const, data: input as T, errorMessage: undefined }),
};

export class McpConnection {
  readonly id: string;
  readonly #config: McpServerConfig;
  readonly #options: McpConnectionOptions;
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
    const delay = Math.min(this.#options.reconnectDelayMs * 2 ** this.#failures, this.#options.maxReconnectDelayMs);
    this.#reconnectTimer = setTimeout(() => void this.#reconnect(), delay);
    this.#reconnectTimer.unref();
  }

  /** Lists the tools anew. A failure keeps the old list. */
  async refresh(): Promise<void> {
    const client = this.#client;
    if (client === null) return;
    try {
      const tools = await this.#listTools(client);
      if (client === this.#client) this.#setTools(tools);
    } catch (error) {
      if (!this.#closed) this.#options.log.warn({ server: this.id, error: describe(error) }, "MCP tool list not refreshed");
    }
  }

  /**
   * Runs a tool. Time-out and `signal` send the server a cancellation.
   * @throws whatever the protocol reports; results with `isError` return.
   */
  async callTool(name: string, args: Record<string, unknown>, options: { signal: AbortSignal; timeoutMs: number }): Promise<ToolResult> {
    const client = this.#client;
    if (client === null) {
      throw new FermataError("mcp_start_failed", `MCP server "${this.id}" is not running; it is being restarted.`);
    }
    const result = await client.callTool({ name, arguments: args }, undefined, {
      signal: options.signal,
      timeout: options.timeoutMs,
    });
    return mcpResultToText(result);
  }

  /** Ends the server: closed input first, killed after a second. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#reconnectTimer);
    await this.#connecting?.catch(() => {});
    const client = this.#client;
    this.#client = null;
    if (client !== null) await closeClient(client);
  }

  async #connect(): Promise<void> {
    const { command, args, env, cwd } = this.#config;
    const environment = mcpEnvironment(process.env, env);
    const transport = new StdioClientTransport({
      command,
      args,
      env: environment,
      stderr: "pipe",
      ...(cwd === undefined ? {} : { cwd }),
    });
    this.#logStandardError(transport);
    const client = new Client(
      { name: "fermata", version: this.#options.version },
      {
        jsonSchemaValidator: noOutputValidation,
        listChanged: { tools: { autoRefresh: false, onChanged: () => void this.refresh() } },
      },
    );
    client.onerror = (error) => this.#options.log.debug({ server: this.id, error: error.message }, "MCP transport error");
    try {
      await client.connect(transport, { timeout: this.#options.connectTimeoutMs });
      const tools = await this.#listTools(client);
      client.onclose = () => this.#onClose(client);
      // It may have died between its last answer and the line above.
      if (transport.pid === null) throw new FermataError("mcp_start_failed", "it ended at once");
      this.#client = client;
      this.#failures = 0;
      this.#setTools(tools);
    } catch (cause) {
      await closeClient(client);
      throw new FermataError("mcp_start_failed", `MCP server "${this.id}" (${command}) did not start: ${describe(cause)}.`, { cause });
    }
  }

  async #listTools(client: Client): Promise<McpToolInfo[]> {
    if (client.getServerCapabilities()?.tools === undefined) return [];
    const tools: McpToolInfo[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < maxToolPages; page++) {
      const result = await client.listTools(cursor === undefined ? undefined : { cursor }, {
        timeout: this.#options.connectTimeoutMs,
      });
      for (const tool of result.tools) {
        // Task-only tools need an API that outlives one call.
        if (tool.execution?.taskSupport === "required") continue;
        tools.push({ name: tool.name, description: tool.description, inputSchema: tool.inputSchema });
      }
      cursor = result.nextCursor;
      if (cursor === undefined) break;
    }
    return tools.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
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
      this.#options.log.warn({ server: this.id, attempt: this.#failures, error: describe(error) }, "MCP server not started");
      if (this.#failures === reconnectsBeforeWithdrawal) this.#setTools([]);
      this.keepTrying();
    }
  }

  #logStandardError(transport: StdioClientTransport): void {
    transport.stderr?.on("data", (chunk: Buffer) => {
      this.#options.log.debug({ server: this.id, stderr: chunk.toString("utf8").trimEnd() }, "MCP server says");
    });
  }
}

async function closeClient(client: Client): Promise<void> {
  const transport = client.transport as StdioClientTransport | undefined;
  const pid = transport?.pid ?? null;
  const timer = setTimeout(() => kill(pid), killAfterMs);
  await client.close().catch(() => {});
  clearTimeout(timer);
}

function kill(pid: number | null): void {
  if (pid === null) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Already gone.
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
