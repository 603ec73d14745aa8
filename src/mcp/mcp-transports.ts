/** The transport that a server's configuration asks for. */

import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import {
  StreamableHTTPClientTransport,
  StreamableHTTPError,
} from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { FetchLike, Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { McpAddress, McpServerConfig } from "./mcp-settings.ts";
import { patientFetch } from "../patient-fetch.ts";
import { boundedFetch } from "./mcp-bounded-fetch.ts";
import type { McpCredentials } from "./mcp-credentials.ts";
import { mcpEnvironment } from "./mcp-environment.ts";
import { refreshedOnce, StoredLogin, withScopes } from "./mcp-oauth.ts";
import { StdioTransport } from "./mcp-stdio-transport.ts";

export type TransportKind = "stdio" | "http" | "sse";

interface TransportOptions {
  /** Of one message. */
  maxMessageBytes: number;
  /** In place of `patientFetch`. */
  fetch?: FetchLike | undefined;
  /** Of logins. Default: none is used. */
  credentials?: McpCredentials | undefined;
  onStandardError(text: string): void;
}

/** The kinds to try, the likeliest first. */
export function transportKinds(config: McpServerConfig): TransportKind[] {
  if ("command" in config) return ["stdio"];
  return config.transport === "auto" ? ["http", "sse"] : [config.transport];
}

export function createTransport(
  config: McpServerConfig,
  kind: TransportKind,
  options: TransportOptions,
): Transport {
  if ("command" in config) {
    const { command, args, cwd } = config;
    const env = mcpEnvironment(process.env, config.env);
    return new StdioTransport({ ...options, command, args, cwd, env });
  }
  return createHttpTransport(config, kind, options);
}

/**
 * Whether the server does not know Streamable HTTP. What it refuses for other reasons (no key, out of
 * order) it would refuse again.
 */
export function speaksOlderSse(error: unknown): boolean {
  return error instanceof StreamableHTTPError && [400, 404, 405, 406].includes(error.code ?? 0);
}

function createHttpTransport(
  { id, url, headers, oauth }: McpAddress & { id: string },
  kind: TransportKind,
  { maxMessageBytes, fetch: inner = patientFetch, credentials }: TransportOptions,
): Transport {
  const bounded = boundedFetch(inner, maxMessageBytes);
  const server = { id, url, oauth };
  const own = (): FetchLike => withHeaders(bounded, new URL(url).origin, headers);
  const options =
    credentials !== undefined && mayLogIn(headers)
      ? {
          authProvider: new StoredLogin(server, credentials),
          fetch: withScopes(refreshedOnce(own()), server, credentials),
        }
      : { requestInit: { headers }, fetch: bounded };
  const transport =
    kind === "sse"
      ? new SSEClientTransport(new URL(url), options)
      : new StreamableHTTPClientTransport(new URL(url), options);
  // The SDK's optional fields are not exact.
  return transport as Transport;
}

/** The operator's own authorization leaves no room for a login's. */
export function mayLogIn(headers: Readonly<Record<string, string>>): boolean {
  return !Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
}

/** The headers are the server's: the authorization server, which is another's, does not get them. */
function withHeaders(
  inner: FetchLike,
  origin: string,
  headers: Readonly<Record<string, string>>,
): FetchLike {
  return (url, init) => {
    if (new URL(url).origin !== origin) return inner(url, init);
    const all = new Headers(headers);
    new Headers(init?.headers).forEach((value, name) => all.set(name, value));
    return inner(url, { ...init, headers: all });
  };
}
