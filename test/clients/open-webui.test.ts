// Open WebUI's requests, as its source makes them (backend/open_webui: routers/ollama.py, routers/openai.py,
// utils/payload.py, utils/task.py): the program itself is too large for a test.
import { expect, test } from "vitest";
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
/** With ENABLE_FORWARD_USER_INFO_HEADERS. */
const headers = {
  "content-type": "application/json",
  "x-openwebui-user-name": "Anna",
  "x-openwebui-user-id": "8f2d6b0e",
  "x-openwebui-user-email": "anna@example.org",
  "x-openwebui-user-role": "admin",
};
const tools = [{ type: "function", function: { name: "get_weather", description, parameters } }];

type Json = Record<string, unknown>;

async function get(path: string): Promise<Json> {
  const reply = await fetch(`${server.url()}${path}`, { headers });
  expect(reply.status).toBe(200);
  return (await reply.json()) as Json;
}

async function post(path: string, body: object): Promise<Response> {
  const reply = await fetch(`${server.url()}${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  expect(reply.status, await (reply.ok ? "" : reply.clone().text())).toBe(200);
  return reply;
}

/** A JSON object a line, as the back end splits the body. */
async function linesOf(reply: Response): Promise<OllamaPart[]> {
  const lines = (await reply.text()).split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as OllamaPart);
}

interface OllamaPart {
  model: string;
  done: boolean;
  done_reason?: string;
  message: {
    content: string;
    tool_calls?: { function: { name: string; arguments: object } }[];
  };
}

test("a connection is checked, and its models are listed and described", async () => {
  expect(await get("/api/version")).toEqual({ version: expect.stringMatching(/^\d+\.\d+\.\d+/) });
  // The list is merged by `model`, and `expires_at` of what is loaded is read as ISO 8601.
  const { models } = (await get("/api/tags")) as { models: Json[] };
  expect(models.map(({ name, model: id }) => [name, id])).toEqual([[model, model]]);
  const { models: loaded } = (await get("/api/ps")) as { models: Json[] };
  expect(loaded).toHaveLength(1);
  expect(Date.parse(String(loaded[0]!["expires_at"]))).not.toBeNaN();
  // It sends the name twice.
  const shown = (await (await post("/api/show", { name: model, model })).json()) as Json;
  expect(shown["capabilities"]).toContain("tools");
});

test("a tool loop over Ollama's API: its history has ids, indexes and objects as arguments", async () => {
  const first = {
    model,
    messages: [{ role: "user", content: question }],
    stream: true,
    tools,
    options: { temperature: 0, num_ctx: 8192, num_keep: 24, num_gpu: 0, num_thread: 2 },
    keep_alive: "5m",
  };
  const parts = await linesOf(await post("/api/chat", first));
  const calls = parts.flatMap(({ message }) => message.tool_calls ?? []);
  const [call] = calls;
  expect(call?.function.name).toBe("get_weather");
  const content = weather(call!.function.arguments);
  expectOneCall();
  expect(parts.at(-1)).toMatchObject({ done: true, done_reason: "stop" });

  const before = await counters();
  const { name, arguments: args } = call!.function;
  const messages = [
    ...first.messages,
    {
      role: "assistant",
      content: "",
      tool_calls: [{ index: 0, id: "call_5f0c", function: { name, arguments: args } }],
    },
    { role: "tool", tool_call_id: "call_5f0c", content },
  ];
  const second = await linesOf(await post("/api/chat", { ...first, messages }));
  expect(second.map(({ message }) => message.content).join("")).toBe(answer);
  // The first round was found in the cache.
  const { cached, prefilled } = await counters();
  expect(cached - before.cached).toBeGreaterThan(prefilled - before.prefilled);
});

test("the task that writes a title: its token limit stands beside the options", async () => {
  const body = {
    model,
    messages: [
      {
        role: "user",
        content: '### Task:\nGenerate a concise title.\n### Output:\nJSON format: { "title": "…" }',
      },
    ],
    stream: false,
    num_predict: 1000,
    options: { temperature: 0, num_predict: 8 },
    metadata: { task: "title_generation", chat_id: "c0ffee" },
  };
  const whole = (await (await post("/api/chat", body)).json()) as OllamaPart & Json;
  expect(whole.done).toBe(true);
  expect(whole["eval_count"]).toBeLessThanOrEqual(8);
});

test("an answer in a form, from response_format", async () => {
  const format = {
    type: "object",
    properties: { city: { type: "string", maxLength: 20 } },
    required: ["city"],
    additionalProperties: false,
  };
  const messages = [
    { role: "system", content: "You name cities." },
    { role: "user", content: "Name a city." },
  ];
  const body = {
    model,
    messages,
    stream: false,
    format,
    options: { num_predict: 60 },
    think: false,
  };
  const { message } = (await (await post("/api/chat", body)).json()) as OllamaPart;
  expect(JSON.parse(message.content)).toEqual({ city: expect.any(String) });
});

test("OpenAI's API: the models, a stream with usage and tools, and a history with its results", async () => {
  const { data } = (await get("/v1/models")) as { data: Json[] };
  const [{ id }] = data as [Json];
  const asking = {
    stream: true,
    model: id,
    messages: [{ role: "user", content: question }],
    stream_options: { include_usage: true },
    tools,
    temperature: 0,
    max_tokens: 200,
  };
  const first = await chunksOf(await post("/v1/chat/completions", asking));
  const calls = first.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
  expect(new Set(calls.map(({ index }) => index))).toEqual(new Set([0]));
  const text = calls.map((call) => call.function?.arguments ?? "").join("");
  const [{ id: callId, function: called }] = calls as [ToolCallPart];
  expect(called!.name).toBe("get_weather");
  const content = weather(JSON.parse(text));
  expectOneCall();
  expect(first.at(-1)!.usage).toMatchObject({ prompt_tokens: expect.any(Number) });

  const toolCall = {
    index: 0,
    id: callId,
    type: "function",
    function: { name: "get_weather", arguments: text },
  };
  const messages = [
    ...asking.messages,
    { role: "assistant", content: "", tool_calls: [toolCall] },
    { role: "tool", tool_call_id: callId, content },
  ];
  const second = await chunksOf(await post("/v1/chat/completions", { ...asking, messages }));
  const said = second.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
  expect(said).toBe(answer);
  expect(second.at(-1)!.usage!.prompt_tokens_details.cached_tokens).toBeGreaterThan(0);
});

interface ToolCallPart {
  index: number;
  id?: string;
  function?: { name?: string; arguments?: string };
}

interface Chunk {
  choices: { delta: { content?: string | null; tool_calls?: ToolCallPart[] } }[];
  usage?: { prompt_tokens_details: { cached_tokens: number } } | null;
}

/** As its middleware reads them: lines that begin with `data:`. */
async function chunksOf(reply: Response): Promise<Chunk[]> {
  const lines = (await reply.text()).split("\n").filter((line) => line.startsWith("data:"));
  const data = lines.map((line) => line.slice("data:".length).trim());
  expect(data.at(-1)).toBe("[DONE]");
  return data.slice(0, -1).map((each) => JSON.parse(each) as Chunk);
}

test("an error is its text", async () => {
  const reply = await fetch(`${server.url()}/api/show`, {
    method: "POST",
    headers,
    body: JSON.stringify({ name: "no-such-model", model: "no-such-model" }),
  });
  expect(reply.status).toBe(404);
  expect(await reply.json()).toMatchObject({ error: "model 'no-such-model' not found" });
});
