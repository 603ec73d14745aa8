/** Agents as model names of every endpoint. */

import { expect, test } from "vitest";
import { defaultSampling } from "../../src/cli/model-files.ts";
import {
  chunk,
  startFakeEndpoint,
  status,
  streamed,
  usageChunk,
} from "../support/fake-endpoint.ts";
import { AgentDirectory } from "../../src/agents/agent-directory.ts";
import { parseAgentsConfig } from "../../src/agents/agents-config.ts";
import {
  callEvents,
  createWorld,
  FakeChat,
  fakeTool,
  finish,
  post,
  provider,
  sseEvents,
  type ScriptStep,
  type World,
} from "./fake-services.ts";
import { usage } from "./fake-figures.ts";

const config = {
  supervisor: "boss",
  agents: {
    boss: { description: "Plans", instructions: "You plan.", sampling: { temperature: 0.25 } },
    reader: {
      description: "Reads",
      instructions: "You read.",
      tools: { files: ["list_files"] },
      limits: { tokens: 50 },
      sampling: { seed: 11 },
    },
  },
};
const tools = provider(
  fakeTool("list_files", { content: "a.txt", isError: false }),
  fakeTool("delete_file", { content: "gone", isError: false }),
);
const question = { messages: [{ role: "user", content: "Which files?" }] };
const delegation = {
  id: "call_1",
  name: "delegate",
  arguments: '{"agent":"reader","task":"List the files"}',
};

function agentWorld(entries: Record<string, object> = config.agents): World {
  const chat = new FakeChat();
  const agents = new AgentDirectory(
    parseAgentsConfig({ ...config, agents: entries }, "agents.json", {}),
    {
      served: { chat, contextSize: 1000, vocabularySize: 500, sampling: defaultSampling },
      files: new Map(),
      tools,
    },
  );
  return createWorld({ chat, agents, tools });
}

/** The supervisor delegates, the reader answers, the supervisor passes it on. */
function scriptDelegation({ chat }: World): void {
  const boss: ScriptStep[] = [
    ...callEvents(delegation),
    { type: "hold", calls: [delegation], usage },
    { type: "content", text: "The reader says: a.txt" },
    finish("stop"),
  ];
  const reader: ScriptStep[] = [{ type: "content", text: "a.txt" }, finish("stop")];
  chat.scriptFor = () => (chat.requests.length === 1 ? boss : reader);
}

test("they are listed as models, after the one that is served", async () => {
  const { app } = agentWorld();
  const { data } = (await app.inject({ url: "/v1/models" })).json();
  expect(data.map(({ id }: { id: string }) => id)).toEqual(["tiny", "boss", "reader"]);
  const one = await app.inject({ url: "/v1/models/reader" });
  expect(one.json()).toMatchObject({ id: "reader", object: "model", context_length: 1000 });
  expect((await app.inject({ url: "/v1/models/nobody" })).statusCode).toBe(404);
});

test("an agent is called by the name that Ollama's list gives it, too", async () => {
  const { app, chat } = agentWorld();
  const { models } = (await app.inject({ url: "/api/tags" })).json();
  expect(models.map(({ name }: { name: string }) => name)).toContain("boss:latest");
  const answer = await post(app, { ...question, model: "boss:latest" });
  expect(answer.json()).toMatchObject({ model: "boss" });
  expect(chat.requests[0]!.messages[0]).toMatchObject({ role: "system", content: "You plan." });
  expect((await app.inject({ url: "/v1/models/boss:latest" })).json().id).toBe("boss");
  const payload = { ...question, model: "boss:latest", stream: false };
  const told = await app.inject({ method: "POST", url: "/api/chat", payload });
  expect(told.json()).toMatchObject({ model: "boss:latest" });
  const shown = await app.inject({ method: "POST", url: "/api/show", payload: { name: "boss" } });
  expect(shown.json()).toMatchObject({ model_info: { "general.basename": "boss" } });
});

test.each([
  ["/v1/chat/completions", question, { prompt_tokens: 50, completion_tokens: 14 }],
  ["/v1/responses", { input: "Which files?" }, { input_tokens: 50, output_tokens: 14 }],
  [
    "/v1/messages",
    question,
    {
      input_tokens: 1,
      cache_creation_input_tokens: 25,
      cache_read_input_tokens: 24,
      output_tokens: 14,
    },
  ],
])("%s: usage counts the agents that were delegated to", async (url, body, total) => {
  const world = agentWorld();
  scriptDelegation(world);
  const payload = { ...body, model: "boss" };
  const response = await world.app.inject({ method: "POST", url, payload });
  expect(response.json().usage).toMatchObject(total);
});

test.each([
  ["chat completions", "/v1/chat/completions", question],
  ["responses", "/v1/responses", { input: "Which files?", store: false }],
  ["messages", "/v1/messages", { ...question, max_tokens: 900 }],
])("%s: instructions, tools, sampling and limits are the agent's", async (_name, url, body) => {
  const world = agentWorld();
  const response = await world.app.inject({
    method: "POST",
    url,
    payload: { ...body, model: "reader" },
  });
  expect(response.statusCode).toBe(200);
  expect(response.json().model).toBe("reader");
  const [request] = world.chat.requests;
  expect(request).toMatchObject({
    messages: [
      { role: "system", content: "You read." },
      { role: "user", content: "Which files?" },
    ],
    toolMode: "internal",
    maxTokens: 50,
    sampling: { temperature: 0.7, seed: 11 },
  });
  expect(request?.tools.map(({ name }) => name)).toEqual(["list_files"]);
});

test("what a client says goes before the agent's sampling; its system message comes after", async () => {
  const world = agentWorld();
  const system = { role: "system", content: "Answer in French." };
  await post(world.app, {
    model: "boss",
    messages: [system, ...question.messages],
    temperature: 1.5,
    max_tokens: 20,
  });
  const [request] = world.chat.requests;
  expect(request?.messages[0]).toEqual({
    role: "system",
    content: "You plan.\n\nAnswer in French.",
  });
  expect(request?.sampling.temperature).toBe(1.5);
  expect(request?.maxTokens).toBe(20);
});

test("a client's tools take the place of the agent's", async () => {
  const world = agentWorld();
  const given = [{ type: "function", function: { name: "get_weather" } }];
  await post(world.app, { ...question, model: "boss", tools: given });
  await post(world.app, { ...question, model: "boss", tools: [] });
  const [external, none] = world.chat.requests;
  expect([external?.toolMode, external?.tools.map(({ name }) => name)]).toEqual([
    "external",
    ["get_weather"],
  ]);
  expect([none?.toolMode, none?.messages[0]?.content]).toEqual(["none", "You plan."]);
});

test.each([
  ["without tools", {}],
  ["with the client's tools", { tools: [{ type: "function", function: { name: "get_weather" } }] }],
])("seconds of an agent %s cut its answer", async (_name, fields) => {
  const brief = { description: "Brief", limits: { seconds: 1 } };
  const { app, chat } = agentWorld({ ...config.agents, brief });
  chat.script = [{ type: "content", text: "Slow" }, { hang: true }];
  const response = await post(app, { ...question, ...fields, model: "brief" });
  expect(response.json().choices).toMatchObject([
    { message: { content: "Slow" }, finish_reason: "length" },
  ]);
});

test("the supervisor delegates within one stream; the client sees its answer alone", async () => {
  const world = agentWorld();
  scriptDelegation(world);
  const response = await post(world.app, { ...question, model: "boss", stream: true });
  const deltas = sseEvents(response.body).filter((event) => event !== "[DONE]") as {
    model: string;
    choices: { delta: { content?: string; tool_calls?: unknown } }[];
  }[];
  expect(deltas.map(({ choices }) => choices[0]?.delta.content ?? "").join("")).toBe(
    "The reader says: a.txt",
  );
  expect(deltas.some(({ choices }) => choices[0]?.delta.tool_calls !== undefined)).toBe(false);
  expect(new Set(deltas.map(({ model }) => model))).toEqual(new Set(["boss"]));
  expect(world.chat.requests[1]).toMatchObject({
    messages: [
      { role: "system", content: "You read." },
      { role: "user", content: "List the files" },
    ],
    owner: "anonymous",
  });
  expect(world.chat.outputs[0]?.map(({ content }) => content)).toEqual(["a.txt"]);
  const metrics = (await world.app.inject({ url: "/metrics" })).body;
  expect(metrics).toContain(
    'fermata_tool_calls_total{server="agent",tool="delegate",outcome="ok"} 1',
  );
});

test("in responses a delegation is a call of the server agent", async () => {
  const world = agentWorld();
  scriptDelegation(world);
  const response = await world.app.inject({
    method: "POST",
    url: "/v1/responses",
    payload: { model: "boss", input: "Which files?", store: false },
  });
  expect(response.json().output).toMatchObject([
    { type: "mcp_call", server_label: "agent", name: "delegate", output: "a.txt" },
    { type: "message" },
  ]);
});

test("the client leaves: the sub-agent is cancelled with its supervisor", async () => {
  const world = agentWorld();
  const boss: ScriptStep[] = [
    ...callEvents(delegation),
    { type: "hold", calls: [delegation], usage },
    finish("stop"),
  ];
  const { chat } = world;
  chat.scriptFor = () =>
    chat.requests.length === 1 ? boss : [{ type: "content", text: "a" }, { hang: true }];
  await world.app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = world.app.server.address() as { port: number };
  const abort = new AbortController();
  const asked = fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...question, model: "boss" }),
    signal: abort.signal,
  }).catch(() => null);
  while (chat.requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  abort.abort();
  await asked;
  while (chat.cancelledCount < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  await world.app.close();
});

test("an agent of another server answers by its name; when it fails, that is no fault of the client", async () => {
  const fake = await startFakeEndpoint(
    streamed(chunk({ content: "From afar." }, "stop"), usageChunk),
    status(401, { error: { message: "Bad key." } }),
  );
  try {
    const endpoint = { url: fake.url, model: "large" };
    const world = agentWorld({ ...config.agents, far: { description: "Far", endpoint } });
    const answered = await post(world.app, { ...question, model: "far", max_tokens: 30 });
    expect(answered.json()).toMatchObject({
      model: "far",
      choices: [{ message: { content: "From afar." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 30, completion_tokens: 9 },
    });
    expect(fake.requests[0]?.body).toMatchObject({ model: "large", max_tokens: 30 });
    expect(fake.requests[0]?.body).not.toHaveProperty("tools");
    const failed = await post(world.app, { ...question, model: "far" });
    expect(failed.statusCode).toBe(502);
    expect(failed.json().error).toMatchObject({ code: "endpoint_failed", type: "server_error" });
    expect(failed.json().error.message).toContain("answered 401: Bad key.");
    const counted = await world.app.inject({
      method: "POST",
      url: "/v1/messages/count_tokens",
      payload: { ...question, model: "far" },
    });
    expect(counted.statusCode).toBe(400);
  } finally {
    await fake.close();
  }
});

test.each([
  ["min_tokens", 3],
  ["stop_token_ids", [5]],
  ["bad_words", ["x"]],
  ["allowed_token_ids", [1]],
  ["include_stop_str_in_output", true],
  ["close_at_limit", true],
  ["logprobs", true],
])("%s is refused by its name where another server answers", async (field, value) => {
  const endpoint = { url: "http://127.0.0.1:9/v1", model: "large" };
  const { app } = agentWorld({ ...config.agents, far: { description: "Far", endpoint } });
  const response = await post(app, { ...question, model: "far", [field]: value });
  expect(response.statusCode).toBe(400);
  expect(response.json().error).toMatchObject({ code: "unsupported_value", param: field });
});

test.each([
  ["/v1/completions", {}],
  ["/api/generate", { raw: true }],
  ["/api/generate", { suffix: "ever after." }],
])("a bare prompt is for models: %s", async (url, fields) => {
  const { app } = agentWorld();
  const payload = { model: "boss", prompt: "Once", ...fields };
  const response = await app.inject({ method: "POST", url, payload });
  expect(response.statusCode).toBe(400);
  expect(response.body).toContain("names an agent");
});

test("tokens are counted with the instructions and the tools", async () => {
  const world = agentWorld();
  await world.app.inject({
    method: "POST",
    url: "/v1/messages/count_tokens",
    payload: { ...question, model: "boss" },
  });
  expect(world.chat.counted[0]?.messages[0]).toEqual({ role: "system", content: "You plan." });
  expect(world.chat.counted[0]?.tools.map(({ name }) => name)).toEqual(["delegate"]);
});
