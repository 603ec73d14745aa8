/** The tools of a server, checked one by one: a bad one is left out and does not take the others along. */

import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { ResultSchema } from "@modelcontextprotocol/sdk/types.js";
import type { JsonSchema } from "../chat/types.ts";
import type { McpAnnotations } from "./rules.ts";
import { isJsonObject } from "../json.ts";
import { plainText } from "./text.ts";

export interface McpToolInfo {
  /** The server's own. */
  name: string;
  description?: string | undefined;
  inputSchema: JsonSchema;
  annotations: McpAnnotations;
  /** It answers with a task that is asked for its result later. */
  isTask: boolean;
}

export interface McpToolList {
  tools: McpToolInfo[];
  /** What is wrong with the list, and with the tools that were left out. */
  problems: string[];
}

/** A server that never stops handing out pages is cut off. */
const maxPages = 100;
const maxTools = 1000;
const maxNameLength = 256;
/** Of a tool's description, and of a server's instructions. */
export const maxDescriptionLength = 8192;
const maxSchemaBytes = 128 * 1024;
const maxSchemaDepth = 64;

/** All pages, sorted by name, so that the prompt is the same in whatever order the server lists. */
export async function listTools(
  client: Client,
  options: { timeout: number; signal?: AbortSignal },
): Promise<McpToolList> {
  const list: McpToolList = { tools: [], problems: [] };
  if (client.getServerCapabilities()?.tools === undefined) return list;
  const names = new Set<string>();
  const cursors = new Set<unknown>();
  let cursor: unknown;
  for (let page = 0; page < maxPages && list.tools.length < maxTools; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const request = { method: "tools/list", params } as const;
    const result = await client.request(request, ResultSchema, options);
    const entries = Array.isArray(result["tools"]) ? (result["tools"] as unknown[]) : [];
    const twice: string[] = [];
    for (const entry of entries) {
      const tool = readTool(entry);
      if (typeof tool === "string") list.problems.push(tool);
      else if (names.has(tool.name)) twice.push(`"${short(tool.name)}" is listed twice`);
      else if (list.tools.length === maxTools) list.problems.push(`more than ${maxTools} tools`);
      else {
        names.add(tool.name);
        list.tools.push(tool);
      }
    }
    cursor = result["nextCursor"];
    const isRead = page > 0 && entries.length > 0 && twice.length === entries.length;
    if (!isRead) list.problems.push(...twice);
    if (typeof cursor !== "string") break;
    if (isRead || cursors.has(cursor)) {
      list.problems.push("it does not end, a page leads to one that was read before");
      break;
    }
    cursors.add(cursor);
  }
  list.tools.sort((a, b) => (a.name < b.name ? -1 : 1));
  list.problems = list.problems.slice(0, 20);
  return list;
}

/** @returns the tool, or why it is left out */
function readTool(entry: unknown): McpToolInfo | string {
  if (!isJsonObject(entry)) return "a tool is no object";
  const { name, description, inputSchema, annotations, execution } = entry;
  if (typeof name !== "string" || name === "") return "a tool has no name";
  if (name.length > maxNameLength) return `the name "${short(name)}" is too long`;
  if (!isJsonObject(inputSchema)) return `"${short(name)}" has no input schema`;
  if (!isShallow(inputSchema)) return `the schema of "${short(name)}" is too deep`;
  if (Buffer.byteLength(JSON.stringify(inputSchema)) > maxSchemaBytes)
    return `the schema of "${short(name)}" is larger than ${maxSchemaBytes} bytes`;
  const hints = isJsonObject(annotations) ? annotations : {};
  return {
    name,
    description:
      typeof description === "string" ? plainText(description, maxDescriptionLength) : undefined,
    inputSchema: { ...inputSchema, type: "object" },
    annotations: {
      readOnly: hints["readOnlyHint"] === true,
      destructive: hints["destructiveHint"] !== false,
    },
    isTask: isJsonObject(execution) && execution["taskSupport"] === "required",
  };
}

/** Level by level: recursion would end where the stack does. */
function isShallow(schema: JsonSchema): boolean {
  let level: unknown[] = [schema];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxSchemaDepth) return false;
    level = level.flatMap((value) =>
      typeof value === "object" && value !== null ? Object.values(value) : [],
    );
  }
  return true;
}

function short(name: string): string {
  return plainText(name, 60);
}
