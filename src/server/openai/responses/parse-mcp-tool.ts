/** A tool of type `mcp`: a server that the operator configured, by its label, or one of the request's own, by its URL. */

import { fieldError, isAbsent, isObject, kindOf, readText, type JsonObject } from "../fields.ts";

export interface McpToolRequest {
  /** Id of the configured server, or what the request calls its own. */
  server: string;
  /** Null: a configured server. */
  address: McpAddress | null;
  /** Null: all. */
  allowed: ReadonlySet<string> | null;
  needsApproval(toolName: string): boolean;
  field: string;
}

/** Where a server of the request's own is. */
export interface McpAddress {
  url: string;
  headers: Record<string, string>;
}

export function parseMcpTool(entry: JsonObject, field: string): McpToolRequest {
  const { server_label: server, connector_id: connector } = entry;
  const address = readAddress(entry, field);
  if (typeof server !== "string" || server === "") {
    const problem = isAbsent(server) ? "is missing" : "is not a name";
    const remedy = "Send the id of a configured MCP server";
    throw fieldError("missing_field", `${field}.server_label`, problem, remedy);
  }
  if (address !== null && !/^[A-Za-z0-9_-]{1,32}$/.test(server)) {
    const remedy = "Send 1 to 32 letters, digits, underscores or hyphens";
    throw fieldError("invalid_value", `${field}.server_label`, "is not a legal name", remedy);
  }
  if (!isAbsent(connector)) {
    const problem = "names a connector of OpenAI's, which is not run here";
    const remedy = "Send server_label, or server_url where the operator allows it";
    throw fieldError("unsupported_value", `${field}.connector_id`, problem, remedy);
  }
  const allowed = readNames(entry["allowed_tools"], `${field}.allowed_tools`);
  const approval = readApproval(entry["require_approval"], `${field}.require_approval`);
  return { server, address, allowed, needsApproval: approval, field };
}

function readAddress(entry: JsonObject, field: string): McpAddress | null {
  const url = readText(entry, "server_url", `${field}.`);
  const headers = readHeaders(entry["headers"], `${field}.headers`);
  const authorization = readText(entry, "authorization", `${field}.`);
  if (url === null) return null;
  const bearer = authorization === null ? {} : { authorization: `Bearer ${authorization}` };
  return { url, headers: { ...headers, ...bearer } };
}

function readHeaders(value: unknown, field: string): Record<string, string> {
  if (isAbsent(value)) return {};
  const remedy = "Send strings by header name";
  if (!isObject(value))
    throw fieldError("invalid_type", field, `must be an object, not ${kindOf(value)}`, remedy);
  for (const [name, text] of Object.entries(value)) {
    const place = `${field}.${name.slice(0, 64)}`;
    if (typeof text !== "string")
      throw fieldError("invalid_type", place, `must be a string, not ${kindOf(text)}`, remedy);
    // What a header cannot hold.
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(text))
      throw fieldError("invalid_value", place, "is not a legal header", remedy);
  }
  return value as Record<string, string>;
}

/** Absent: always, as at OpenAI. */
function readApproval(value: unknown, field: string): (toolName: string) => boolean {
  if (isAbsent(value) || value === "always") return () => true;
  if (value === "never") return () => false;
  if (!isObject(value)) {
    const remedy = 'Send "always", "never" or {"never": {"tool_names": […]}}';
    throw fieldError("invalid_value", field, "is not a known policy", remedy);
  }
  const never = readNames(value["never"], `${field}.never`);
  const always = readNames(value["always"], `${field}.always`);
  return (name) => always?.has(name) === true || never?.has(name) !== true;
}

/** An array of names, or an object with them as `tool_names`. */
function readNames(value: unknown, field: string): ReadonlySet<string> | null {
  if (isAbsent(value)) return null;
  const list = isObject(value) ? value["tool_names"] : value;
  if (isAbsent(list)) return null;
  if (!Array.isArray(list) || list.some((name) => typeof name !== "string")) {
    const problem = `must be an array of names, not ${kindOf(list)}`;
    throw fieldError("invalid_type", field, problem, "Send the tools' names");
  }
  return new Set(list as string[]);
}
