/** The transport that a server's configuration asks for. */

import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import {
  StreamableHTTPClientTransport,
  StreamableHTTPError,
} from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { FetchLike, Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { McpAddress, McpServerConfig } from "../settings.ts";
import { patientFetch } from "../../patient-fetch.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import type { McpCredentials } from "../login/credentials.ts";
import { refreshedOnce, StoredLogin, withScopes } from "../login/stored-login.ts";
import { StdioTransport } from "./stdio-transport.ts";

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

/** Who and where the user is: the MCP SDK's list. And locale and temp. */
const posixNames = "HOME LOGNAME PATH SHELL TERM USER LANG LANGUAGE TMPDIR TEMP TMP";
const windowsNames =
  "APPDATA COMSPEC HOMEDRIVE HOMEPATH LANG LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE " +
  "PROGRAMFILES SYSTEMDRIVE SYSTEMROOT TEMP TMP USERNAME USERPROFILE";

/** How a program reaches the network from here, in small letters: files, folders, hosts and switches. */
const networkNames = new Set([
  "node_extra_ca_certs",
  "node_use_system_ca",
  "node_use_env_proxy",
  "ssl_cert_file",
  "ssl_cert_dir",
  "requests_ca_bundle",
  "curl_ca_bundle",
  "no_proxy",
  "npm_config_cache",
  "npm_config_cafile",
  "npm_config_globalconfig",
  "npm_config_noproxy",
  "npm_config_userconfig",
  "pip_cert",
  "pip_config_file",
  "uv_cache_dir",
  "uv_native_tls",
]);

/** Addresses of proxies, and from where npm, pip and uv get packages. */
const addressNames = new Set([
  "http_proxy",
  "https_proxy",
  "all_proxy",
  "npm_config_https_proxy",
  "npm_config_proxy",
  "npm_config_registry",
  "pip_index_url",
  "uv_default_index",
  "uv_index_url",
]);

/** An address with a password has an `@`, however it is written; a token may be in its query. One in a path is not seen. */
const mayBeSecret = /[@?]/;

/** What a server that Fermata starts gets of its environment: none that is meant to hold a secret. Those of `own`, then `configured`. */
function mcpEnvironment(
  own: NodeJS.ProcessEnv,
  configured: Record<string, string>,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const isWindows = platform === "win32";
  const names = new Set((isWindows ? windowsNames : posixNames).split(" "));
  const isPlain = (name: string): boolean => {
    const canonical = isWindows ? name.toUpperCase() : name;
    return names.has(canonical) || canonical.startsWith("LC_");
  };
  const environment: Record<string, string> = {};
  for (const [name, value = ""] of Object.entries(own)) {
    const canonical = name.toLowerCase();
    const isAddress = addressNames.has(canonical) && !mayBeSecret.test(value);
    if (isPlain(name) || networkNames.has(canonical) || isAddress) environment[name] = value;
  }
  return Object.assign(environment, configured);
}
