import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { JsonSchema } from "../chat/types.ts";

export interface McpToolInfo {
  name: string;
  description?: string | undefined;
  inputSchema: JsonSchema;
}

/** A server that never stops handing out pages is cut off. */
const maxPages = 100;

/** All pages, sorted by name, so that the prompt is the same in whatever order the server lists. */
export async function listTools(client: Client, timeoutMs: number): Promise<McpToolInfo[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const tools: McpToolInfo[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < maxPages; page++) {
    const params = cursor === undefined ? undefined : { cursor };
    const result = await client.listTools(params, { timeout: timeoutMs });
    for (const { name, description, inputSchema, execution } of result.tools) {
      // Task-only tools need an API that outlives one call.
      if (execution?.taskSupport !== "required") tools.push({ name, description, inputSchema });
    }
    cursor = result.nextCursor;
    if (cursor === undefined) break;
  }
  return tools.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}
