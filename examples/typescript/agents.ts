// A supervisor that hands tasks to sub-agents; an agent is a model's name.
//
//   npm start -- --mcp-config examples/mcp.json --agents examples/agents.json
//   npx tsx examples/typescript/agents.ts
import OpenAI from "openai";
import { findServer } from "./find-server.ts";

const start = "npm start -- --mcp-config examples/mcp.json --agents examples/agents.json";
const client = new OpenAI(await findServer(start));

const models = await client.models.list();
console.log(`models: ${models.data.map(({ id }) => id).join(", ")}`);

const question = "Ask the analyst to find the weather in Paris";
const stream = await client.chat.completions.create({
  model: "supervisor",
  messages: [{ role: "user", content: process.argv[2] ?? question }],
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");
process.stdout.write("\n");
