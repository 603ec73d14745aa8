// LangChain's chat model, its tools bound, over both APIs.
import {
  type AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { expect, test } from "vitest";
import {
  answer,
  description,
  expectOneCall,
  parameters,
  question,
  serveForTests,
  weather,
} from "./weather.ts";

const server = serveForTests();

test.each([false, true])("streamed (over Responses: %s)", async (useResponsesApi) => {
  const model = new ChatOpenAI({
    model: "fermata-small",
    apiKey: "none",
    maxRetries: 0,
    useResponsesApi,
    configuration: { baseURL: `${server.url()}/v1` },
  }).bindTools([{ type: "function", function: { name: "get_weather", description, parameters } }]);
  const messages: BaseMessage[] = [new HumanMessage(question)];
  const ask = async () => {
    const chunks: AIMessageChunk[] = [];
    for await (const chunk of await model.stream(messages)) chunks.push(chunk);
    return chunks.reduce<AIMessageChunk>((whole, chunk) => whole.concat(chunk), chunks.shift()!);
  };
  const first = await ask();
  messages.push(first);
  for (const call of first.tool_calls ?? []) {
    messages.push(new ToolMessage({ content: weather(call.args), tool_call_id: call.id! }));
  }
  expectOneCall();
  const second = (await ask()) as AIMessageChunk;
  expect(second.text).toBe(answer);
  expect(second.usage_metadata).toMatchObject({
    input_token_details: { cache_read: expect.any(Number) },
  });
});
