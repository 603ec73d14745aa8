// A tool of the request: the server hands its calls over, this program runs them.
//
//   npm start
//   npx tsx examples/typescript/external-tools.ts
import OpenAI from "openai";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import { findServer } from "./find-server.ts";

const client = new OpenAI(await findServer("npm start"));
const tools = [
  {
    type: "function" as const,
    function: {
      name: "get_weather",
      description: "Get weather for a location",
      parameters: {
        type: "object",
        properties: { location: { type: "string", description: "City name" } },
        required: ["location"],
      },
    },
  },
];
const messages: ChatCompletionMessageParam[] = [
  { role: "user", content: "What is the weather in Tokyo?" },
];

// `tools` is given, so the MCP servers' stay out of the prompt and the answer ends with the calls.
const first = await client.chat.completions.create({ model: "default", messages, tools });
const message = first.choices[0]!.message;
messages.push(message);
for (const call of message.tool_calls ?? []) {
  if (call.type !== "function") continue;
  console.log(`Execute: ${call.function.name}(${call.function.arguments})`);
  const content = JSON.stringify({ temperature: 19, condition: "rainy" });
  messages.push({ role: "tool", tool_call_id: call.id, content });
}

// What was generated is still in the KV cache: only the results are computed.
const second = await client.chat.completions.create({ model: "default", messages, tools });
console.log(second.choices[0]!.message.content);
console.log(`cached tokens: ${second.usage?.prompt_tokens_details?.cached_tokens}`);
