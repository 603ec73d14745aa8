// One streamed answer; the server runs its MCP tools while it is written.
//
//   npm start -- --mcp-command npx --mcp-args=-y,@modelcontextprotocol/server-filesystem,/tmp/demo/docs
//   npx tsx examples/typescript/streaming-with-mcp.ts
import OpenAI from "openai";
import { findServer } from "./find-server.ts";

const start =
  "npm start -- --mcp-command npx --mcp-args=-y,@modelcontextprotocol/server-filesystem,/tmp/demo/docs";
const client = new OpenAI(await findServer(start));
const question = "List the files in /tmp/demo/docs, then read notes.txt and tell me what it says.";

// No `tools`: the MCP servers' are in the prompt, and their calls are run by the server.
const stream = await client.chat.completions.create({
  model: "default",
  messages: [{ role: "user", content: process.argv[2] ?? question }],
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");
process.stdout.write("\n");
