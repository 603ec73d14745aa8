// openai: the stream helpers, and the runner that calls tools by itself.
import OpenAI from "openai";
import { beforeEach, expect, test } from "vitest";
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
const model = "fermata-small";
let client: OpenAI;
beforeEach(() => {
  client = new OpenAI({ baseURL: `${server.url()}/v1`, apiKey: "none", maxRetries: 0 });
});

const tool = {
  type: "function" as const,
  function: { name: "get_weather", description, parameters },
};

test("chat.completions.stream, a round by hand", async () => {
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: question }];
  const ask = () =>
    client.chat.completions
      .stream({ model, messages, tools: [tool], stream_options: { include_usage: true } })
      .finalChatCompletion();
  const first = await ask();
  expect(first.choices[0]!.finish_reason).toBe("tool_calls");
  const message = first.choices[0]!.message;
  messages.push(message);
  for (const call of message.tool_calls ?? []) {
    if (call.type !== "function") throw new TypeError(call.type);
    const content = weather(JSON.parse(call.function.arguments));
    messages.push({ role: "tool", tool_call_id: call.id, content });
  }
  const second = await ask();
  expect(second.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: answer } });
  // What the first answer read and wrote is in the cache, but for its end token.
  expect(second.usage?.prompt_tokens_details?.cached_tokens).toBe(first.usage!.total_tokens - 1);
  expectOneCall();
});

test("chat.completions.runTools", async () => {
  const runner = client.chat.completions.runTools({
    model,
    messages: [{ role: "user", content: question }],
    tools: [
      {
        type: "function",
        function: {
          ...tool.function,
          parse: JSON.parse,
          function: (args: object) => weather(args),
        },
      },
    ],
    stream: true,
  });
  expect(await runner.finalContent()).toBe(answer);
  expectOneCall();
});

test("responses.stream, the history sent again", async () => {
  const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: question }];
  const ask = () =>
    client.responses
      .stream({
        model,
        input,
        tools: [{ type: "function", name: "get_weather", description, parameters, strict: false }],
      })
      .finalResponse();
  const first = await ask();
  for (const item of first.output) {
    input.push(item as OpenAI.Responses.ResponseInputItem);
    if (item.type !== "function_call") continue;
    const output = weather(JSON.parse(item.arguments));
    input.push({ type: "function_call_output", call_id: item.call_id, output });
  }
  expectOneCall();
  const second = await ask();
  expect(second.output_text).toBe(answer);
  const { usage } = first;
  expect(second.usage?.input_tokens_details.cached_tokens).toBeGreaterThanOrEqual(
    usage!.total_tokens - 1,
  );
});
