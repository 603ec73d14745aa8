/** Which MCP servers to run: from an `mcp.json` file or from one command line. */

import { readFileSync } from "node:fs";
import { FermataError } from "../errors.ts";

export interface McpServerConfig {
  /** Key in the file; labels logs and metrics and prefixes tool names. */
  id: string;
  command: string;
  args: string[];
  /** Added to the small environment every server gets. */
  env: Record<string, string>;
  cwd?: string | undefined;
}

/** Id of the server that `--mcp-command` starts. */
const singleServerId = "mcp";

export function mcpServerFromCommand(command: string, args: string[]): McpServerConfig {
  return { id: singleServerId, command, args, env: {} };
}

/** @throws FermataError mcp_config_invalid, naming the file and the key */
export function readMcpConfig(path: string): McpServerConfig[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw invalid(path, "", `cannot be read (${describe(cause)})`, cause);
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw invalid(path, "", `is not valid JSON (${describe(cause)})`, cause);
  }
  return parseMcpConfig(json, path);
}

/** Servers in the file's order. Disabled ones (`"disabled": true`) are left out. */
export function parseMcpConfig(json: unknown, path: string): McpServerConfig[] {
  if (!isRecord(json)) throw invalid(path, "", 'must be an object with the key "mcpServers"');
  const servers = json["mcpServers"];
  if (servers === undefined) throw invalid(path, "mcpServers", "is missing");
  if (!isRecord(servers))
    throw invalid(path, "mcpServers", "must be an object: server id to its command");
  return Object.entries(servers).flatMap(([id, entry]) => {
    const key = `mcpServers.${id}`;
    if (id === "") throw invalid(path, "mcpServers", "has a server with an empty id");
    if (!isRecord(entry)) throw invalid(path, key, "must be an object with a command");
    return entry["disabled"] === true ? [] : [parseServer(id, entry, key, path)];
  });
}

function parseServer(
  id: string,
  entry: Record<string, unknown>,
  key: string,
  path: string,
): McpServerConfig {
  const { command, args = [], env = {}, cwd, url, type } = entry;
  if (command === undefined && url !== undefined) {
    throw invalid(
      path,
      `${key}.url`,
      "names a remote server; only stdio servers (a command) are supported",
    );
  }
  if (type !== undefined && type !== "stdio") {
    throw invalid(path, `${key}.type`, 'must be "stdio"; other transports are not supported');
  }
  if (typeof command !== "string" || command === "") {
    throw invalid(
      path,
      `${key}.command`,
      command === undefined ? "is missing" : "must be a non-empty string",
    );
  }
  if (!Array.isArray(args)) throw invalid(path, `${key}.args`, "must be an array of strings");
  args.forEach((arg, index) => {
    if (typeof arg !== "string") throw invalid(path, `${key}.args[${index}]`, "must be a string");
  });
  if (!isRecord(env)) throw invalid(path, `${key}.env`, "must be an object of strings");
  for (const [name, value] of Object.entries(env)) {
    if (typeof value !== "string") throw invalid(path, `${key}.env.${name}`, "must be a string");
  }
  if (cwd !== undefined && typeof cwd !== "string")
    throw invalid(path, `${key}.cwd`, "must be a string");
  return { id, command, args: args as string[], env: env as Record<string, string>, cwd };
}

function invalid(path: string, key: string, problem: string, cause?: unknown): FermataError {
  const place = key === "" ? path : `${path}: "${key}"`;
  return new FermataError("mcp_config_invalid", `MCP configuration ${place} ${problem}.`, {
    param: key === "" ? undefined : key,
    cause,
  });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
