// @anthropic-ai/sdk: the message stream, and a tool loop that reuses the KV prefix.
import Anthropic from "@anthropic-ai/sdk";
import { beforeEach, expect, test } from "vitest";
import {
  answer,
  counters,
  description,
  expectOneCall,
  parameters,
  question,
  serveForTests,
  weather,
} from "./weather.ts";

const server = serveForTests();
const model = "fermata-small";
const tools: Anthropic.Tool[] = [{ name: "get_weather", description, input_schema: parameters }];
let client: Anthropic;
beforeEach(() => {
  client = new Anthropic({ baseURL: server.url(), apiKey: "none", maxRetries: 0 });
});

test("messages.stream, a round by hand: only what is new is computed", async () => {
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: question }];
  const params = { model, max_tokens: 200, messages, tools };
  const { input_tokens: counted } = await client.messages.countTokens({ model, messages, tools });
  const first = client.messages.stream(params);
  const pieces: string[] = [];
  first.on("inputJson", (piece) => pieces.push(piece));
  const message = await first.finalMessage();
  expect(message.stop_reason).toBe("tool_use");
  expect(message.usage).toMatchObject({
    input_tokens: 1,
    cache_creation_input_tokens: counted - 1,
    cache_read_input_tokens: 0,
  });
  const [call] = message.content;
  if (call?.type !== "tool_use") throw new TypeError(String(call?.type));
  expect(JSON.parse(pieces.join(""))).toEqual(call.input);
  messages.push(
    { role: "assistant", content: message.content },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: call.id, content: weather(call.input) }],
    },
  );
  expectOneCall();

  const before = await counters();
  const second = await client.messages.stream(params).finalMessage();
  const after = await counters();
  expect(second).toMatchObject({
    stop_reason: "end_turn",
    content: [{ type: "text", text: answer }],
  });
  // The generated tokens were spliced in: all but the end token, which was never decoded.
  const seen = counted + message.usage.output_tokens - 1;
  expect(second.usage.cache_read_input_tokens).toBe(seen);
  const { input_tokens: last, cache_creation_input_tokens: written } = second.usage;
  expect(after.prefilled - before.prefilled).toBe(last + written!);
});

test("beta.messages.toolRunner", async () => {
  const runner = client.beta.messages.toolRunner({
    model,
    max_tokens: 200,
    messages: [{ role: "user", content: question }],
    tools: [
      {
        name: "get_weather",
        description,
        input_schema: parameters,
        run: async (input: unknown) => weather(input),
        parse: (input: unknown) => input,
      },
    ],
    stream: true,
  });
  const message = await runner.runUntilDone();
  expect(message.content).toMatchObject([{ type: "text", text: answer }]);
  expectOneCall();
});

test("errors are the SDK's own", async () => {
  const bad = { model, max_tokens: 10, messages: [{ role: "user" as const, content: [] }] };
  const wrong = { ...bad, messages: [{ role: "assistant" as const, content: "Well," }] };
  await expect(client.messages.create(wrong)).rejects.toMatchObject({
    status: 400,
    type: "invalid_request_error",
    requestID: expect.stringMatching(/^req_/),
  });
});
