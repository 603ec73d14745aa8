// A folder of five models, three in memory at most: every request is answered by the model that it names, whatever
// leaves memory meanwhile, and a conversation goes on after its model was away.
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { afterAll, beforeAll, expect, test } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { modelPath } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import type { Kind } from "../support/kind-tensors.ts";
import { writeRandomKind } from "../support/random-kinds.ts";

const kinds: Kind[] = ["gemma3", "lfm2", "mamba2"];
const names = ["small", "twin", ...kinds];
let folder: string;
let server: ServedCommand;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fermata-many-models-"));
  for (const name of ["small", "twin"]) await symlink(modelPath, join(folder, `${name}.gguf`));
  for (const kind of kinds) await symlink(writeRandomKind(kind), join(folder, `${kind}.gguf`));
  server = await serveCommand(
    `--models-dir=${folder}`,
    "--model=small",
    "--models-max=3",
    "--ctx-size=512",
    "--parallel=2",
    "--store=none",
    "--audit",
    "--cache-disk=256",
    `--cache-dir=${join(folder, "cache")}`,
  );
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

interface Completion {
  model: string;
  choices: [{ message: { content: string } }];
  usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } };
}

// oxlint-disable-next-line typescript/no-explicit-any
type Json = any;

async function post(path: string, body: object): Promise<{ status: number; body: Json }> {
  const headers = { "content-type": "application/json" };
  const reply = await fetch(server.url + path, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  return { status: reply.status, body: await reply.json() };
}

async function get(path: string): Promise<Json> {
  return await (await fetch(server.url + path)).json();
}

type Message = { role: "user" | "assistant"; content: string };

async function ask(model: string, messages: Message[], more: object = {}): Promise<Completion> {
  const reply = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, messages, temperature: 0, max_tokens: 6, ...more }),
  });
  const body = await reply.text();
  expect(reply.status, body).toBe(200);
  return JSON.parse(body) as Completion;
}

async function states(): Promise<{ id: string; state: string; uses: number }[]> {
  const { models } = (await (await fetch(`${server.url}/api/models`)).json()) as {
    models: { id: string; state: string; uses: number }[];
  };
  return models;
}

/** Park and Miller's: the same numbers in every run. */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
}

test("200 requests to random models: each is answered by its own, three are in memory at most", async () => {
  const alone = new Map<string, string>();
  for (const name of names) {
    const { choices } = await ask(name, [{ role: "user", content: "Hello" }]);
    alone.set(name, choices[0].message.content);
  }
  const random = generator(7);
  const wanted = Array.from({ length: 200 }, () => names[random(names.length)]!);
  let most = 0;
  const client = async (): Promise<void> => {
    for (let name = wanted.pop(); name !== undefined; name = wanted.pop()) {
      const { model, choices } = await ask(name, [{ role: "user", content: "Hello" }]);
      expect(model).toBe(name);
      expect(choices[0].message.content).toBe(alone.get(name));
      most = Math.max(most, (await states()).filter(({ state }) => state !== "unloaded").length);
    }
  };
  await Promise.all(Array.from({ length: 4 }, client));
  expect(most).toBe(3);
  expect((await states()).map(({ uses }) => uses)).toEqual([0, 0, 0, 0, 0]);
});

test("a conversation goes on after its model was away: only what is new is computed", async () => {
  const messages: Message[] = [
    { role: "user", content: `Remember: ${"the harbour opens at six. ".repeat(12)}` },
  ];
  const first = await ask("twin", messages);
  const kept = first.usage.prompt_tokens;
  for (const name of kinds) await ask(name, messages);
  expect((await states()).find(({ id }) => id === "twin")).toMatchObject({ state: "unloaded" });
  const second = await ask("twin", [
    ...messages,
    { role: "assistant", content: first.choices[0].message.content },
    { role: "user", content: "When?" },
  ]);
  expect(second.usage.prompt_tokens_details.cached_tokens).toBeGreaterThanOrEqual(kept);
});

test("what a model wrote is found as it wrote it after the model was away", async () => {
  const messages: Message[] = [
    { role: "user", content: `What does the snake say? ${"It is long and green. ".repeat(12)}` },
  ];
  const { body: letter } = await post("/tokenize", { content: "s", model: "twin" });
  const first = await ask("twin", messages, { logit_bias: { [letter.tokens[0]]: 100 } });
  const { content } = first.choices[0].message;
  // A rendering of the text has other tokens than the six that were generated.
  expect(content).toBe("ssssss");
  const { body: rendered } = await post("/tokenize", { content, model: "twin" });
  expect(rendered.tokens).toHaveLength(3);
  for (const name of kinds) await ask(name, messages);
  expect((await states()).find(({ id }) => id === "twin")).toMatchObject({ state: "unloaded" });
  const second = await ask("twin", [
    ...messages,
    { role: "assistant", content },
    { role: "user", content: "And the bee?" },
  ]);
  // All but the token that was generated last.
  expect(second.usage.prompt_tokens_details.cached_tokens).toBe(first.usage.prompt_tokens + 5);
});

const messages = [{ role: "user", content: "Hello" }];
const wires: [path: string, body: object][] = [
  ["/v1/chat/completions", { messages, max_tokens: 4 }],
  ["/v1/messages", { messages, max_tokens: 4 }],
  ["/v1/responses", { input: "Hello", max_output_tokens: 4 }],
  ["/v1/completions", { prompt: "Hello", max_tokens: 4 }],
  ["/completion", { prompt: "Hello", n_predict: 4 }],
  ["/api/chat", { messages, stream: false, options: { num_predict: 4 } }],
  ["/api/generate", { prompt: "Hello", stream: false, options: { num_predict: 4 } }],
];
const countingWires: [path: string, body: object][] = [
  ["/v1/chat/completions/input_tokens", { messages }],
  ["/v1/messages/count_tokens", { messages }],
  ["/v1/responses/input_tokens", { input: "Hello" }],
  ["/tokenize", { content: "Hello" }],
  ["/apply-template", { messages }],
];

test.each(wires)("%s answers with the model that is named", async (path, body) => {
  for (const model of ["twin", "small"]) {
    const reply = await post(path, { ...body, model });
    expect(reply).toMatchObject({ status: 200, body: { model } });
  }
  // The default.
  const { model: _, ...unnamed } = { model: "", ...body };
  expect(await post(path, { ...unnamed, model: "default" })).toMatchObject({
    body: { model: "small" },
  });
});

test.each([...wires, ...countingWires])("%s does not know other models", async (path, body) => {
  const { status, body: said } = await post(path, { ...body, model: "smal" });
  expect(status).toBe(404);
  expect(JSON.stringify(said)).toContain('There is no model \\"smal\\". Did you mean small?');
});

test.each(countingWires)("%s counts with the model that is named", async (path, body) => {
  await post("/v1/models/load", { model: "small" });
  expect(await post(path, { ...body, model: "twin" })).toMatchObject({ status: 200 });
  expect((await states()).find(({ id }) => id === "twin")).toMatchObject({ state: "loaded" });
});

test("lists tell all models, and details of those that are in memory", async () => {
  await post("/v1/models/load", { model: "mamba2" });
  await post("/v1/models/unload", { model: "lfm2" });
  const { data } = await get("/v1/models");
  expect(data.map(({ id }: Json) => id).toSorted()).toEqual(names.toSorted());
  const of = (name: string): Json => data.find(({ id }: Json) => id === name);
  expect(of("mamba2")).toMatchObject({
    status: { value: "loaded" },
    context_length: 512,
    meta: { n_ctx_train: 4096 },
  });
  expect(of("lfm2")).toMatchObject({ status: { value: "unloaded" } });
  expect(of("lfm2")).not.toHaveProperty("context_length");
  expect(await get("/v1/models/lfm2")).toEqual(of("lfm2"));
  const tags = (await get("/api/tags")).models;
  expect(tags.map(({ name }: Json) => name)).toContain("lfm2:latest");
  expect(tags.find(({ name }: Json) => name === "lfm2:latest").details.family).toBe("lfm2");
  const ps = (await get("/api/ps")).models.map(({ name }: Json) => name);
  expect(ps).toContain("mamba2:latest");
  expect(ps).not.toContain("lfm2:latest");
  const shown = await post("/api/show", { model: "lfm2:latest" });
  expect(shown.body).toMatchObject({
    capabilities: ["completion", "tools"],
    model_info: { "general.architecture": "lfm2", "lfm2.context_length": 4096 },
  });
  expect(shown.body.template).toContain("tools");
});

test("who only looks loads no model: without a name it is told of the one that was used last", async () => {
  await post("/v1/models/unload", { model: "small" });
  await post("/v1/models/load", { model: "twin" });
  expect((await get("/props")).model_alias).toBe("twin");
  expect(await get("/slots")).toHaveLength(2);
  expect((await states()).find(({ id }) => id === "small")).toMatchObject({ state: "unloaded" });
  expect((await get("/props?model=small")).model_alias).toBe("small");
});

test("load_duration of Ollama's answers is the wait for the model, and a moment once it is there", async () => {
  await post("/v1/models/unload", { model: "twin" });
  const asked = { model: "twin", prompt: "Hi", stream: false, options: { num_predict: 2 } };
  const first = (await post("/api/generate", asked)).body;
  expect(first.load_duration).toBeGreaterThan(1e6);
  expect(first.total_duration).toBeGreaterThan(first.load_duration);
  const second = (await post("/api/generate", asked)).body;
  expect(second.load_duration).toBeLessThan(first.load_duration);
});

test("keep_alive of Ollama's requests: 0 unloads", async () => {
  expect(await post("/api/generate", { model: "twin", prompt: "" })).toMatchObject({
    body: { done_reason: "load" },
  });
  expect((await states()).find(({ id }) => id === "twin")).toMatchObject({ state: "loaded" });
  expect(await post("/api/generate", { model: "twin", prompt: "", keep_alive: 0 })).toMatchObject({
    body: { done_reason: "unload" },
  });
  await eventually(async () => {
    const twin = (await states()).find(({ id }) => id === "twin");
    expect(twin).toMatchObject({ state: "unloaded" });
  });
  const { status, body } = await post("/api/generate", { model: "twin", keep_alive: "soon" });
  expect(status).toBe(400);
  expect(JSON.stringify(body)).toContain("keep_alive");
});

test("a stream that runs keeps its model in memory", async () => {
  const reply = await fetch(`${server.url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "twin",
      prompt: "One",
      max_tokens: 300,
      ignore_eos: true,
      stream: true,
    }),
  });
  await post("/v1/models/unload", { model: "small" });
  for (const kind of kinds) await ask(kind, [{ role: "user", content: "Hello" }]);
  expect(await reply.text()).toContain("[DONE]");
  expect((await states()).map(({ uses }) => uses)).toEqual([0, 0, 0, 0, 0]);
});

test("a run of a conversation is answered by the conversation's model", async () => {
  const created = await post("/api/conversations", { model: "twin" });
  const { id } = created.body;
  const started = await post(`/api/conversations/${id}/runs`, { message: "Hello" });
  expect(started.status).toBe(202);
  await eventually(async () => {
    const { messages: kept } = await get(`/api/conversations/${id}`);
    expect(kept.at(-1)).toMatchObject({ role: "assistant", status: "complete" });
  });
  expect((await states()).find(({ id: name }) => name === "twin")).toMatchObject({ uses: 0 });
  expect(
    await post(`/api/conversations/${id}/runs`, { message: "Hi", model: "nobody" }),
  ).toMatchObject({
    status: 404,
  });
});

test("the page chooses among all, whichever are in memory", async () => {
  for (const name of names) await post("/v1/models/unload", { model: name });
  const empty = await get("/api/tools");
  expect(empty.models.map(({ id }: Json) => id).toSorted()).toEqual(names.toSorted());
  expect(empty).toMatchObject({ context_size: null, prompt_tokens: null });
  expect(await get("/health")).toMatchObject({ status: "ok" });
  expect(await get("/api/engine")).toMatchObject({
    sequences: { running: 0, waiting: 0, held: 0 },
  });
  await post("/v1/models/load", { model: "twin" });
  expect(await get("/api/tools")).toMatchObject({ context_size: 512 });
  expect(await get("/api/engine")).toMatchObject({ model: { id: "twin", context_size: 512 } });
});

test("metrics have the name of each model", async () => {
  await post("/v1/models/load", { model: "small" });
  const text = await (await fetch(`${server.url}/metrics`)).text();
  expect(text).toMatch(/fermata_generated_tokens_total\{model="small"\} \d+/);
});

test("a file that is put into the folder is served", async () => {
  await symlink(modelPath, join(folder, "late.gguf"));
  await eventually(async () => {
    expect((await states()).map(({ id }) => id)).toContain("late");
  });
  const late = await ask("late", [{ role: "user", content: "Hello" }]);
  expect(late.model).toBe("late");
});

test("fermata ps lists what is in memory", async () => {
  await post("/v1/models/load", { model: "gemma3" });
  await post("/v1/models/unload", { model: "lfm2" });
  const ps = spawnSync(process.execPath, ["dist/cli/main.js", "ps", "--url", server.url], {
    encoding: "utf8",
  });
  expect(ps.stdout).toMatch(/^NAME +STATE +SIZE +CONTEXT +USED BY +LEAVES\n/);
  expect(ps.stdout).toMatch(/^gemma3 +loaded +2\.0 MB +512 tokens +0 +when its room is needed$/m);
  expect(ps.stdout).not.toContain("lfm2");
});

test("the model of agents stays in memory with --keep-alive 0 too", async () => {
  const agents = join(folder, "agents.json");
  const boss = { description: "Answers", instructions: "You answer." };
  await writeFile(agents, JSON.stringify({ supervisor: "boss", agents: { boss } }));
  const own = await serveCommand(
    `--models-dir=${folder}`,
    "--model=small",
    "--ctx-size=512",
    "--keep-alive=0",
    "--store=none",
    `--agents=${agents}`,
  );
  try {
    const reply = await fetch(`${own.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "boss", messages, max_tokens: 4 }),
    });
    expect(reply.status, await reply.text()).toBe(200);
    const { models } = (await (await fetch(`${own.url}/api/models`)).json()) as Json;
    expect(models.find(({ id }: Json) => id === "small")).toMatchObject({
      state: "loaded",
      is_pinned: true,
    });
  } finally {
    await own.stop();
  }
});

test("a WebSocket's requests choose models", async () => {
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none" });
  const socket = new ResponsesWS(client);
  const said = async (model: string): Promise<unknown> => {
    socket.send({ type: "response.create", model, input: "Hello", max_output_tokens: 4 });
    return await new Promise((resolve, reject) => {
      socket.once("response.incomplete", ({ response }) => resolve(response.model));
      socket.once("response.completed", ({ response }) => resolve(response.model));
      socket.once("error", reject);
    });
  };
  expect(await said("twin")).toBe("twin");
  expect(await said("small")).toBe("small");
  await expect(said("nobody")).rejects.toThrow("There is no model");
  socket.close();
});
