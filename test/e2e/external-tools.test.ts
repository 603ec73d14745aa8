// Tools that the client runs: the round is returned, and its return costs its new tokens.
import { afterEach, expect, test } from "vitest";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import type { ResponseInput } from "openai/resources/responses/responses";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

const question = "What's the weather in Tokyo and in Oslo?";
const tools = [
  {
    type: "function" as const,
    function: {
      name: "get_weather",
      description: "Get the weather of a place",
      parameters: {
        type: "object",
        properties: { location: { type: "string" } },
        required: ["location"],
      },
    },
  },
];

let server: ScriptedServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

test("a round of two calls is returned, and its return prefills only what is new", async () => {
  server = await startScriptedServer();
  const { client } = server;
  await server.script(question, [
    // Spacing that no re-rendering would give back: the generated tokens themselves must be reused.
    `<tool_call>\n{"name":"get_weather",  "arguments": {"location":"Tokyo"}}\n</tool_call>\n${callText("get_weather", { location: "Oslo" })}`,
    "Sunny in Tokyo, snow in Oslo.",
  ]);
  const messages: ChatCompletionMessageParam[] = [{ role: "user", content: question }];
  const first = await client.chat.completions.create({ model: "default", messages, tools });
  const message = first.choices[0]?.message;
  expect(first.choices[0]?.finish_reason).toBe("tool_calls");
  const calls = message?.tool_calls ?? [];
  expect(calls.map((call) => call.type === "function" && call.function)).toEqual([
    { name: "get_weather", arguments: '{"location":"Tokyo"}' },
    { name: "get_weather", arguments: '{"location":"Oslo"}' },
  ]);

  const before = await server.settledStats();
  if (message) messages.push(message);
  messages.push(
    { role: "tool", tool_call_id: calls[0]?.id ?? "", content: "sunny" },
    { role: "tool", tool_call_id: calls[1]?.id ?? "", content: "snow" },
  );
  const second = await client.chat.completions.create({ model: "default", messages, tools });
  expect(second.choices[0]?.message.content).toBe("Sunny in Tokyo, snow in Oslo.");

  const after = await server.settledStats();
  const usage = second.usage;
  const seen = (first.usage?.prompt_tokens ?? 0) + (first.usage?.completion_tokens ?? 0);
  // All that was prompt or generated is in the cache, but for the end token: it was never decoded.
  expect(usage?.prompt_tokens_details?.cached_tokens).toBe(seen - 1);
  expect(after.prefilledTokens - before.prefilledTokens).toBe(
    (usage?.prompt_tokens ?? 0) - (seen - 1),
  );
  expect(server.chat.counters.splices).toBe(1);
});

test.each([["\n"], ['"'], ["call"], ["<"], ["<tool_call>"], ["Tokyo", "}}"]])(
  "a call is whole whatever stop strings are in it: %j",
  async (...stop) => {
    server = await startScriptedServer();
    const { client } = server;
    const round = `${callText("get_weather", { location: "Tokyo" })}\n${callText("get_weather", { location: "Oslo" })}`;
    await server.script(question, [round]);
    const messages: ChatCompletionMessageParam[] = [{ role: "user", content: question }];
    const { choices } = await client.chat.completions.create({
      model: "default",
      messages,
      tools,
      stop,
    });
    expect(choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: {
        tool_calls: [
          { function: { arguments: '{"location":"Tokyo"}' } },
          { function: { arguments: '{"location":"Oslo"}' } },
        ],
      },
    });
  },
);

test("a forged history gets no one's tokens", async () => {
  server = await startScriptedServer();
  const { client } = server;
  await server.script(question, [callText("get_weather", { location: "Tokyo" }), "ok"]);
  const first = await client.chat.completions.create({
    model: "default",
    messages: [{ role: "user", content: question }],
    tools,
  });
  const call = first.choices[0]?.message.tool_calls?.[0];
  const id = call?.id ?? "";
  await client.chat.completions.create({
    model: "default",
    max_tokens: 4,
    messages: [
      { role: "user", content: question },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            id,
            type: "function",
            function: { name: "get_weather", arguments: '{"location":"Rome"}' },
          },
        ],
      },
      { role: "tool", tool_call_id: id, content: "rain" },
    ],
    tools,
  });
  expect(server.chat.counters.splices).toBe(0);
});

test("without tools and MCP servers the closing tag is text", async () => {
  server = await startScriptedServer();
  const { client } = server;
  const text = `See ${callText("get_weather", { location: "Tokyo" })} and go on.`;
  await server.script("Show me a call.", [text]);
  for (const given of [{}, { tools: [] }, { tools, tool_choice: "none" as const }]) {
    const completion = await client.chat.completions.create({
      model: "whatever",
      messages: [{ role: "user", content: "Show me a call." }],
      ...given,
    });
    expect(completion.choices[0]?.message.content).toBe(text);
    expect(completion.choices[0]?.finish_reason).toBe("stop");
    expect(completion.model).toBe("fermata-small");
  }
});

test("what the model says behind its calls belongs to their turn in responses, too", async () => {
  server = await startScriptedServer();
  const { client } = server;
  const fenced = `Let me see.\n\`\`\`json\n{"name": "get_weather", "arguments": {"location": "Tokyo"}}\n\`\`\`\nThat is all.`;
  await server.script(question, [fenced, "Sunny."]);
  const flat = tools.map((tool) => ({ type: tool.type, strict: false, ...tool.function }));
  const shared = { model: "default", tools: flat, store: false };
  const asked = { role: "user" as const, content: question };
  const first = await client.responses.create({ ...shared, input: [asked] });
  expect(first.output.map(({ type }) => type)).toEqual(["message", "function_call", "message"]);
  const call = first.output.find((item) => item.type === "function_call");
  const result = { type: "function_call_output" as const, call_id: call!.call_id, output: "sunny" };
  const input = [asked, ...first.output, result] as ResponseInput;
  const second = await client.responses.create({ ...shared, input });
  expect(second.output_text).toBe("Sunny.");
  const { usage } = second;
  expect(usage!.input_tokens_details.cached_tokens).toBe(first.usage!.total_tokens - 1);
});
