/** Requests wait for MCP servers that are still starting; what is missing then is told in a header and the log. */

import type { FastifyReply, FastifyRequest } from "fastify";
import type { ToolProvider } from "../../tools/types.ts";
import { isObject } from "../body/field-error.ts";

export const missingServersHeader = "x-fermata-missing-servers";

/** A route's `preHandler`: before its tools are looked up. */
export function waitForServers(provider: Pick<ToolProvider, "missing"> | null) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (provider?.missing === undefined || !mayCallServers(request.body)) return;
    const servers = await provider.missing();
    if (servers.length === 0) return;
    request.log.warn({ servers }, "MCP servers are not ready: the answer goes without their tools");
    reply.header(missingServersHeader, servers.map((name) => encodeURIComponent(name)).join(","));
  };
}

/** Not of a client that brings its own tools, or wants none. */
function mayCallServers(body: unknown): boolean {
  if (!isObject(body)) return false;
  const { tools, tool_choice: choice } = body;
  if (choice === "none") return false;
  if (!Array.isArray(tools)) return true;
  // A conversation names tools of servers; a response's are objects.
  return tools.some(
    (tool: unknown) => typeof tool === "string" || (isObject(tool) && tool["type"] === "mcp"),
  );
}
