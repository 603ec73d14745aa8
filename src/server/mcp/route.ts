/** POST /mcp: the model and the agents for MCP clients. */

import type { BareRoute } from "../route.ts";
import type { McpEndpoint } from "../../mcp/server/endpoint.ts";
import type { RouteContext } from "../context.ts";

export function mcpRoute(context: RouteContext): BareRoute {
  let endpoint: Promise<McpEndpoint> | undefined;
  return {
    at: "POST /mcp",
    config: { refusesOtherSites: true },
    handler: async (request, reply) => {
      // The SDK is loaded for the first client that speaks it.
      endpoint ??= import("../../mcp/server/endpoint.ts").then(
        ({ McpEndpoint }) => new McpEndpoint(context.config.version ?? "0"),
      );
      const { ModelTools } = await import("./tools.ts");
      const owner = request.owner;
      const post = {
        url: `http://localhost${request.url}`,
        headers: headersOf(request.headers),
        body: request.body,
        owner,
        signal: context.active.signalFor(reply),
      };
      const tools = new ModelTools(context, request);
      return reply.send(await (await endpoint).answer(post, tools));
    },
  };
}

/** What the protocol reads. */
const namesRead = ["accept", "content-type", "mcp-protocol-version", "mcp-session-id"];

function headersOf(sent: Readonly<Record<string, string | string[] | undefined>>): Headers {
  const headers = new Headers();
  for (const name of namesRead) {
    const value = sent[name];
    if (typeof value === "string") headers.set(name, value);
  }
  return headers;
}
