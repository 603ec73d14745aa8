/** A tool that Fermata runs itself. Type-only. */

import type { Logger } from "../chat/chat-engine.ts";
import type { ToolDefinition } from "../chat/types.ts";

export interface ToolResult {
  /** Text for the model. An error's message when `isError`. */
  content: string;
  isError: boolean;
}

export interface Tool {
  readonly definition: ToolDefinition;
  /** Who runs it: an MCP server's name, `agent`, … Labels metrics and logs. */
  readonly server: string;
  /** What its server calls it, if the model knows it by another name. */
  readonly originalName?: string | undefined;
  /** Of this tool's calls, in place of the caller's limit. */
  readonly timeoutMs?: number | undefined;
  /** Never throws: failures, time-outs and cancellation come back as `isError` results. */
  call(args: unknown, signal: AbortSignal, callId?: string): Promise<ToolResult>;
}

/** Tools offered now. The list may change between requests, never within one. */
export interface ToolProvider {
  tools(): Tool[];
  close(): Promise<void>;
}

/** pino's loggers fit. */
export interface ToolLogger extends Logger {
  info(details: object, message: string): void;
  error(details: object, message: string): void;
}
