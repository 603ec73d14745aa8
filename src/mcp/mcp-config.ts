/** Which MCP servers to run: from an `mcp.json` file or from one command line. */

import { readFileSync } from "node:fs";
import type { McpProcess, McpServerConfig } from "./mcp-settings.ts";
import { FermataError } from "../errors.ts";
import { parseServer } from "./mcp-config-server.ts";

/** Id of the server that `--mcp-command` starts. */
const singleServerId = "mcp";

export function mcpServerFromCommand(
  command: string,
  args: string[],
): McpServerConfig & McpProcess {
  return { id: singleServerId, command, args, env: {} };
}

/** @throws FermataError mcp_config_invalid, naming the file and the key */
export function readMcpConfig(
  path: string,
  environment: NodeJS.ProcessEnv = process.env,
): McpServerConfig[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw invalid(path, "", `${unreadable(cause)}`, cause);
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw invalid(path, "", `is not valid JSON (${describe(cause)})`, cause);
  }
  return parseMcpConfig(json, path, environment);
}

/** Servers in the file's order. Disabled ones (`"disabled": true`) are left out. */
export function parseMcpConfig(
  json: unknown,
  path: string,
  environment: NodeJS.ProcessEnv = process.env,
): McpServerConfig[] {
  const isRecord = typeof json === "object" && json !== null && !Array.isArray(json);
  if (!isRecord) throw invalid(path, "", 'must be an object with the key "mcpServers"');
  const servers = (json as Record<string, unknown>)["mcpServers"];
  if (servers === undefined) throw invalid(path, "mcpServers", "is missing");
  if (typeof servers !== "object" || servers === null || Array.isArray(servers))
    throw invalid(path, "mcpServers", "must be an object: server id to its command or url");
  return Object.entries(servers).flatMap(([id, entry]) => {
    if (id === "") throw invalid(path, "mcpServers", "has a server with an empty id");
    const fail = (key: string, problem: string): FermataError =>
      invalid(path, key === "" ? `mcpServers.${id}` : `mcpServers.${id}.${key}`, problem);
    const server = parseServer(id, entry, environment, fail);
    return server === null ? [] : [server];
  });
}

function invalid(path: string, key: string, problem: string, cause?: unknown): FermataError {
  const place = key === "" ? path : `${path}: "${key}"`;
  return new FermataError("mcp_config_invalid", `MCP configuration ${place} ${problem}.`, {
    param: key === "" ? undefined : key,
    cause,
  });
}

function unreadable(cause: unknown): string {
  const missing = (cause as NodeJS.ErrnoException).code === "ENOENT";
  return missing ? "does not exist" : `cannot be read (${describe(cause)})`;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
