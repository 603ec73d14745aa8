// Tools of several MCP servers, named `<server>_<tool>`.
//
//   npm start -- --mcp-config examples/mcp.json
//   npx tsx examples/typescript/several-servers.ts
import OpenAI from "openai";
import { findServer } from "./find-server.ts";

const start = "npm start -- --mcp-config examples/mcp.json";
const client = new OpenAI(await findServer(start));
const given = process.argv.slice(2);
const questions = ["What is the weather in Paris?", "Read the file notes.txt"];

// In /v1/responses the calls that the server ran stand in the output, each with its server.
for (const input of given.length > 0 ? given : questions) {
  console.log(`> ${input}`);
  const response = await client.responses.create({ model: "default", input });
  for (const item of response.output) {
    if (item.type === "mcp_call")
      console.log(`  ${item.server_label}: ${item.name}(${item.arguments})`);
  }
  console.log(response.output_text);
}
