// An MCP server with two made-up tools, over stdio: what a server of your own may look like.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "city", version: "1.0.0" });
const inputSchema = { city: z.string().describe("City name") };
// It only reads, so that a host may start it before the model has ended its turn.
const annotations = { readOnlyHint: true };

const answer = (value) => ({ content: [{ type: "text", text: JSON.stringify(value) }] });

server.registerTool(
  "get_weather",
  { description: "Get the current weather for a location.", inputSchema, annotations },
  async ({ city }) => answer({ city, temperature: 21, condition: "sunny" }),
);
server.registerTool(
  "get_time",
  { description: "Get the current time in a city.", inputSchema, annotations },
  async () => answer({ time: "14:30" }),
);

await server.connect(new StdioServerTransport());
