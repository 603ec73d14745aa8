// @openai/agents: an agent with one tool, over both APIs.
import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool,
} from "@openai/agents";
import OpenAI from "openai";
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
setTracingDisabled(true);

test.each([
  ["chat completions", OpenAIChatCompletionsModel],
  ["responses", OpenAIResponsesModel],
])("over %s, streamed", async (_name, Model) => {
  const client = new OpenAI({ baseURL: `${server.url()}/v1`, apiKey: "none", maxRetries: 0 });
  const agent = new Agent({
    name: "Weather",
    model: new Model(client, "fermata-small"),
    tools: [
      tool({
        name: "get_weather",
        description,
        strict: false,
        parameters: { ...parameters, additionalProperties: true },
        execute: async (args) => weather(args),
      }),
    ],
  });
  const result = await run(agent, question, { stream: true });
  await result.completed;
  expect(result.finalOutput).toBe(answer);
  expectOneCall();
});
