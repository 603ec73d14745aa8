/** The settings of one MCP server, and what src/mcp asks of a logger. Type-only. */

import type { McpToolRules } from "./rules.ts";

export type McpServerConfig = McpServerSettings & (McpProcess | McpAddress);

/** A program that is started and spoken to over its standard input and output. */
export interface McpProcess {
  command: string;
  args: string[];
  /** Added to the small environment every server gets. */
  env: Record<string, string>;
  cwd?: string | undefined;
}

/** A server that runs elsewhere. */
export interface McpAddress {
  url: string;
  /** `auto`: Streamable HTTP, and the older SSE if the server refuses it. */
  transport: "http" | "sse" | "auto";
  headers: Record<string, string>;
  oauth?: McpOAuth | undefined;
}

/** What a login is at. */
export interface OAuthServer {
  id: string;
  url: string;
  oauth?: McpOAuth | undefined;
}

/** Of a login at the server, where its own words are not enough. */
export interface McpOAuth {
  /** Of a client that is registered already. Default: each login registers one. */
  clientId?: string | undefined;
  clientSecret?: string | undefined;
  scope?: string | undefined;
  /** As the authorization server calls itself. Default: by the address that the MCP server names. */
  issuer?: string | undefined;
  /** The authorization server checks PKCE, though its metadata does not say so. */
  pkce?: boolean | undefined;
  /** Of the callback, if the registered client has one. Default: any. */
  callbackPort?: number | undefined;
}

/** What a server may ask of the model while one of its tools runs. */
export interface McpSampling {
  /** Of all answers to one call. */
  maxTokens: number;
  /** The server may have the messages of the request put before its own. */
  context: boolean;
}

interface McpServerSettings {
  /** Key in the file; labels logs and metrics and prefixes tool names. */
  id: string;
  rules?: McpToolRules | undefined;
  /** For the handshake and each listing. Default: 30 s. */
  startTimeoutMs?: number | undefined;
  /** Without a sign of life from a call. Default: as for all tools. */
  timeoutMs?: number | undefined;
  /** Of a call, whatever it reports. */
  totalTimeoutMs?: number | undefined;
  /** Undefined: the server may not ask the model. */
  sampling?: McpSampling | undefined;
  /** Whether the server may ask the person who looks on. Default: yes. */
  elicitation?: boolean | undefined;
  /** Whether the model reads what the server says about its tools. Default: yes. */
  instructions?: boolean | undefined;
  /** Keys of other programs' configurations that have no effect here. */
  ignoredKeys?: readonly string[] | undefined;
}

export interface McpLogger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}
