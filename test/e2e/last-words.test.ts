// An agent's last words: its tools stay in the request, and `tool_choice` lets none be called.
import { afterEach, expect, test } from "vitest";
import type { ChatCompletion } from "openai/resources/chat/completions";
import type { Response } from "openai/resources/responses/responses";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

const question = "What's the weather in Tokyo?";
const name = "get_weather";
const description = "Get the weather of a place";
const schema = { type: "object", properties: { location: { type: "string" } } };
const asked = { role: "user", content: question };

interface Message {
  content: { id?: string; text?: string }[];
  usage: Record<
    "input_tokens" | "output_tokens" | "cache_read_input_tokens" | "cache_creation_input_tokens",
    number
  >;
}

interface Answer {
  text: string;
  /** Tokens of prompt and answer. */
  seen: number;
  cached: number;
  /** The answer with its call, and the call's result, as the wire takes them. */
  next: object[];
}

/** How each wire asks. `off`: no tool may be called. */
const wires = {
  async chat(more: object[], off: boolean, given: object = {}): Promise<Answer> {
    const answer = await post<ChatCompletion>("/v1/chat/completions", {
      messages: [asked, ...more],
      tools: [{ type: "function", function: { name, description, parameters: schema } }],
      ...(off && { tool_choice: "none" }),
      ...given,
    });
    const { message } = answer.choices[0]!;
    const id = message.tool_calls?.[0]!.id;
    return {
      text: message.content ?? "",
      seen: answer.usage!.total_tokens,
      cached: answer.usage!.prompt_tokens_details!.cached_tokens!,
      next: [message, { role: "tool", tool_call_id: id, content: "sunny" }],
    };
  },
  async responses(more: object[], off: boolean): Promise<Answer> {
    const answer = await post<Response>("/v1/responses", {
      input: [asked, ...more],
      tools: [{ type: "function", name, description, parameters: schema, strict: false }],
      ...(off && { tool_choice: "none" }),
    });
    const last = answer.output.at(-1)!;
    const id = last.type === "function_call" ? last.call_id : undefined;
    const said = last.type === "message" ? last.content[0]! : undefined;
    return {
      text: said?.type === "output_text" ? said.text : "",
      seen: answer.usage!.total_tokens,
      cached: answer.usage!.input_tokens_details.cached_tokens,
      next: [...answer.output, { type: "function_call_output", call_id: id, output: "sunny" }],
    };
  },
  async messages(more: object[], off: boolean): Promise<Answer> {
    const { content, usage } = await post<Message>("/v1/messages", {
      max_tokens: 100,
      messages: [asked, ...more],
      tools: [{ name, description, input_schema: schema }],
      ...(off && { tool_choice: { type: "none" } }),
    });
    const { input_tokens, cache_read_input_tokens: cached, cache_creation_input_tokens } = usage;
    const result = { type: "tool_result", tool_use_id: content.at(-1)!.id, content: "sunny" };
    return {
      text: content.at(-1)!.text ?? "",
      seen: input_tokens + cached + cache_creation_input_tokens + usage.output_tokens,
      cached,
      next: [
        { role: "assistant", content },
        { role: "user", content: [result] },
      ],
    };
  },
};

let server: ScriptedServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

async function post<Body>(path: string, body: object): Promise<Body> {
  const response = await fetch(`${server!.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "default", ...body }),
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Body;
}

test.each(["chat", "responses", "messages"] as const)(
  "%s: the conversation finds itself in the cache, tools and all",
  async (wire) => {
    server = await startScriptedServer();
    await server.script(question, [callText(name, { location: "Tokyo" }), "Sunny."]);
    const first = await wires[wire]([], false);
    const last = await wires[wire](first.next, true);
    expect(last.text).toBe("Sunny.");
    // All that was read and written, but for the end token.
    expect(last.cached).toBe(first.seen - 1);
  },
);

test("no call is written, however much the model wants one", async () => {
  server = await startScriptedServer();
  await server.script(question, [callText(name, { location: "Tokyo" })]);
  const first = await wires.chat([], false);
  // From here on it says what it likes, and likes nothing better than to call.
  await server.begin(question, "");
  const [marker] = await server.engine.tokenize("<tool_call>");
  const eager = { logit_bias: { [String(marker)]: 100 }, max_tokens: 16 };
  const last = await wires.chat(first.next, true, eager);
  expect(last.text).not.toBe("");
  expect(last.text).not.toContain("<tool_call>");
  expect(last.cached).toBeGreaterThanOrEqual(first.seen - 1);
});
