// The AI SDK, over its three ways to an OpenAI server.
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, stepCountIs, streamText, tool, type LanguageModel } from "ai";
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
const id = "fermata-small";

const models: Record<string, (baseURL: string) => LanguageModel> = {
  "openai-compatible": (baseURL) =>
    createOpenAICompatible({ name: "fermata", baseURL, includeUsage: true })(id),
  "openai, chat": (baseURL) => createOpenAI({ baseURL, apiKey: "none" }).chat(id),
  "openai, responses": (baseURL) => createOpenAI({ baseURL, apiKey: "none" }).responses(id),
};

test.each(Object.keys(models))("%s: streamText runs a tool", async (name) => {
  const result = streamText({
    model: models[name]!(`${server.url()}/v1`),
    prompt: question,
    tools: {
      get_weather: tool({
        description,
        inputSchema: jsonSchema<{ city: string }>(parameters),
        execute: async (args) => weather(args),
      }),
    },
    stopWhen: stepCountIs(5),
    maxRetries: 0,
    onError: ({ error }) => {
      throw error;
    },
  });
  expect(await result.text).toBe(answer);
  const steps = await result.steps;
  expect(steps.map((step) => step.finishReason)).toEqual(["tool-calls", "stop"]);
  expect(steps[1]!.usage.inputTokenDetails.cacheReadTokens).toBeGreaterThan(0);
  expectOneCall();
});
