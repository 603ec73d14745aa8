/** A server that a request named by its URL: reached over public addresses only, for as long as the request takes. */

import { FermataError } from "../errors.ts";
import type { ConnectedServer, ServerConnector } from "../tools/types.ts";
import { McpConnection } from "./connection.ts";
import {
  type AddressRules,
  checkUrl,
  guardedFetch,
  publicOnly,
} from "./transport/guarded-fetch.ts";
import type { McpHostOptions } from "./host.ts";
import { nameTools } from "./names.ts";
import { describeError } from "./text.ts";
import { McpTool } from "./tool.ts";

/** Somebody waits for the first token. */
const connectTimeoutMs = 10_000;

type RequestServer = Parameters<ServerConnector["connect"]>[0];
type Options = Pick<McpHostOptions, "log" | "version" | "toolTimeoutMs" | "maxResultBytes">;

export function requestServerConnector(options: Options): ServerConnector {
  return { connect: (server, signal) => connectForRequest(server, options, signal) };
}

/**
 * Its tools are `<label>_<tool>`; none is trusted to be read-only.
 * @throws FermataError invalid_value (the URL may not be reached) | mcp_server_unreachable
 */
export async function connectForRequest(
  { label, url, headers }: RequestServer,
  { log, version, toolTimeoutMs = 60_000, maxResultBytes = 1024 ** 2 }: Options,
  signal: AbortSignal,
  rules: AddressRules = publicOnly,
): Promise<ConnectedServer> {
  const { href } = checkUrl(url, rules);
  const never = { allow: null, deny: [], readOnly: false, approval: [] };
  const connection = new McpConnection(
    {
      id: label,
      url: href,
      transport: "auto",
      headers: { ...headers },
      rules: never,
      elicitation: false,
    },
    { log, version, connectTimeoutMs, fetch: guardedFetch(rules) },
  );
  const giveUp = (): void => void connection.close();
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    await connection.connect();
  } catch (error) {
    await connection.close();
    const cause = (error as Error).cause;
    if (cause instanceof FermataError && cause.code === "invalid_value") throw cause;
    throw new FermataError("mcp_server_unreachable", describeError(error), { cause: error });
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
  const limits = { timeoutMs: toolTimeoutMs, maxResultBytes };
  return {
    tools: nameTools([connection], true).map(
      ({ exposed, tool }) => new McpTool(exposed, tool, connection, limits),
    ),
    close: async () => await connection.close(),
  };
}
