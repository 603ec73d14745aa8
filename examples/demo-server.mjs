// Two small MCP servers over stdio, to see what a server of your own may look like:
//   node examples/demo-server.mjs city            made-up weather
//   node examples/demo-server.mjs files FOLDER    reads the files of one folder
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const [name = "city", folder = "."] = process.argv.slice(2);
const server = new McpServer({ name, version: "1.0.0" });
// They only read, so that a host may start them before the model has ended its turn.
const annotations = { readOnlyHint: true };

function tool(toolName, description, inputSchema, run) {
  server.registerTool(toolName, { description, inputSchema, annotations }, async (args) => {
    const result = await run(args);
    const text = typeof result === "string" ? result : JSON.stringify(result);
    return { content: [{ type: "text", text }] };
  });
}

if (name === "city") {
  const city = { city: z.string().describe("City name") };
  tool("get_weather", "Get the current weather for a location.", city, (args) => ({
    city: args.city,
    temperature: 21,
    condition: "sunny",
  }));
} else {
  const path = { path: z.string().describe("Path of the file") };
  // Whatever path a model writes, it stays in the folder.
  tool("read_file", "Read a file.", path, (args) =>
    readFile(join(folder, basename(args.path)), "utf8"),
  );
}

await server.connect(new StdioServerTransport());
