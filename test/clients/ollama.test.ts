// ollama-js: models, a tool loop that is streamed, thinking switched off, a form, a prompt, and an error.
import { Ollama, type Message, type Tool } from "ollama";
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
const model = "fermata-small:latest";
const tool: Tool = { type: "function", function: { name: "get_weather", description, parameters } };
let client: Ollama;
beforeEach(() => {
  client = new Ollama({ host: server.url() });
});

test("list, show and ps name the model and what it can do", async () => {
  const { models } = await client.list();
  expect(models.map(({ name }) => name)).toEqual([model]);
  const { capabilities, model_info } = await client.show({ model });
  expect(capabilities).toContain("tools");
  expect(model_info).toMatchObject({ "general.architecture": expect.any(String) });
  const { models: loaded } = await client.ps();
  expect(loaded[0]).toMatchObject({ name: model, digest: models[0]?.digest });
});

test("a tool loop, streamed: only what is new is computed", async () => {
  const messages: Message[] = [{ role: "user", content: question }];
  const options = { temperature: 0, num_predict: 200 };
  const said: Message = { role: "assistant", content: "", tool_calls: [] };
  let read = 0;
  let written = 0;
  for await (const part of await client.chat({
    model,
    messages,
    tools: [tool],
    stream: true,
    options,
  })) {
    said.content += part.message.content;
    said.tool_calls?.push(...(part.message.tool_calls ?? []));
    if (!part.done) continue;
    expect(part.done_reason).toBe("stop");
    read = part.prompt_eval_count;
    written = part.eval_count;
  }
  const [call] = said.tool_calls ?? [];
  if (call === undefined) throw new TypeError("no call");
  expect(call.function.name).toBe("get_weather");
  messages.push(said, {
    role: "tool",
    tool_name: call.function.name,
    content: weather(call.function.arguments),
  });
  expectOneCall();

  const before = await counters();
  const second = await client.chat({ model, messages, tools: [tool], options });
  const after = await counters();
  expect(second.message).toEqual({ role: "assistant", content: answer });
  // The generated tokens were spliced in: all but the end token, which was never decoded.
  expect(after.prefilled - before.prefilled).toBe(second.prompt_eval_count - read - written + 1);
});

test("an answer in the form of a schema", async () => {
  const format = {
    type: "object",
    properties: { city: { type: "string", maxLength: 20 } },
    required: ["city"],
    additionalProperties: false,
  };
  const messages = [{ role: "user", content: "Name a city." }];
  const { message } = await client.chat({ model, messages, format, options: { num_predict: 60 } });
  expect(JSON.parse(message.content)).toEqual({ city: expect.any(String) });
});

test("generate, raw and streamed", async () => {
  let text = "";
  const options = { num_predict: 4, temperature: 0 };
  const stream = await client.generate({ model, prompt: "Once", raw: true, stream: true, options });
  for await (const part of stream) {
    text += part.response;
    if (part.done) expect(part).toMatchObject({ done_reason: "length", eval_count: 4 });
  }
  const whole = await client.generate({ model, prompt: "Once", raw: true, options });
  expect(whole.response).toBe(text);
});

test("the context of an answer begins the next one, and is found in the cache", async () => {
  const options = { num_predict: 20, temperature: 0 };
  const { context } = await client.generate({ model, prompt: "What is 2 + 2?", options });
  const before = await counters();
  const next = await client.generate({ model, prompt: "And 3 + 3?", context, options });
  const after = await counters();
  expect(next.context.slice(0, context.length)).toEqual(context);
  // The last token was never decoded.
  expect(after.prefilled - before.prefilled).toBe(next.prompt_eval_count - context.length + 1);
});

test("an error has its text and status", async () => {
  const failed = client.show({ model: "no-such-model" });
  await expect(failed).rejects.toMatchObject({
    error: "model 'no-such-model' not found",
    status_code: 404,
  });
});
