/** One tool of one MCP server. Every failure becomes a result that the model can read. */

import type { ToolDefinition } from "../chat/types.ts";
import type { Tool, ToolCallContext, ToolResult } from "../tools/types.ts";
import type { McpConnection } from "./mcp-connection.ts";
import type { McpToolInfo } from "./mcp-tool-list.ts";

/** JSON-RPC code of the SDK's McpError for a request that took too long. */
const requestTimeout = -32001;

export class McpTool implements Tool {
  readonly definition: ToolDefinition;
  readonly server: string;
  readonly #connection: McpConnection;
  readonly originalName: string;
  readonly #timeoutMs: number;

  constructor(
    exposedName: string,
    info: McpToolInfo,
    connection: McpConnection,
    timeoutMs: number,
  ) {
    this.definition = {
      name: exposedName,
      description: info.description,
      parameters: info.inputSchema,
    };
    this.server = connection.id;
    this.#connection = connection;
    this.originalName = info.name;
    this.#timeoutMs = timeoutMs;
  }

  async call(args: unknown, { signal }: ToolCallContext): Promise<ToolResult> {
    if (typeof args !== "object" || args === null || Array.isArray(args)) {
      return { content: "Error: the arguments must be a JSON object.", isError: true };
    }
    try {
      return await this.#connection.callTool(this.originalName, args as Record<string, unknown>, {
        signal,
        timeoutMs: this.#timeoutMs,
      });
    } catch (error) {
      return { content: `Error: ${this.#explain(error, signal)}`, isError: true };
    }
  }

  #explain(error: unknown, signal: AbortSignal): string {
    if (signal.aborted) return "the call was cancelled.";
    if ((error as { code?: unknown }).code === requestTimeout) {
      return `the tool did not answer within ${this.#timeoutMs / 1000} seconds.`;
    }
    return error instanceof Error ? error.message : String(error);
  }
}
