/** A tool of type `mcp`: a server that the operator configured, by its label. */

import { fieldError, isAbsent, isObject, kindOf, type JsonObject } from "../fields.ts";

export interface McpToolRequest {
  /** Id of the configured server. */
  server: string;
  /** Null: all. */
  allowed: ReadonlySet<string> | null;
  needsApproval(toolName: string): boolean;
  field: string;
}

export function parseMcpTool(entry: JsonObject, field: string): McpToolRequest {
  const { server_label: server, server_url: url, connector_id: connector } = entry;
  if (typeof server !== "string" || server === "") {
    const problem = isAbsent(server) ? "is missing" : "is not a name";
    const remedy = "Send the id of a configured MCP server";
    throw fieldError("missing_field", `${field}.server_label`, problem, remedy);
  }
  for (const [key, value] of Object.entries({ server_url: url, connector_id: connector })) {
    if (isAbsent(value)) continue;
    const problem = "names a server that the operator of this one did not configure";
    const remedy = "Send only the server_label of a configured MCP server";
    throw fieldError("unsupported_value", `${field}.${key}`, problem, remedy);
  }
  const allowed = readNames(entry["allowed_tools"], `${field}.allowed_tools`);
  const approval = readApproval(entry["require_approval"], `${field}.require_approval`);
  return { server, allowed, needsApproval: approval, field };
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
