/** What Ollama's API tells of the models. */

import { expect, test } from "vitest";
import { createWorld, fakeEmbedder, type World } from "./fake-services.ts";

function show({ app }: World, body: object) {
  return app.inject({ method: "POST", url: "/api/show", payload: body });
}

test("models: the list, the loaded one, and what it can do", async () => {
  const world = createWorld({ model: { toolSection: "template" } });
  const get = async (url: string) => (await world.app.inject({ url })).json();
  const { version } = await get("/api/version");
  expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  // codex --oss leaves a server that says it is older.
  expect(version.localeCompare("0.13.4", "en", { numeric: true })).toBeGreaterThanOrEqual(0);
  const listed = {
    name: "tiny:latest",
    model: "tiny:latest",
    modified_at: expect.any(String),
    size: 60,
    digest: expect.stringMatching(/^[0-9a-f]{64}$/),
    details: {
      parent_model: "",
      format: "gguf",
      family: "llama",
      families: ["llama"],
      parameter_size: "0.03K",
      quantization_level: "Q4_K_M",
      context_length: 1000,
      embedding_length: 12,
    },
  };
  const capabilities = ["completion", "tools", "thinking"];
  expect(await get("/api/tags")).toEqual({ models: [{ ...listed, capabilities }] });
  expect(await get("/api/ps")).toMatchObject({ models: [{ ...listed, context_length: 1000 }] });
  const shown = await show(world, { model: "tiny:latest" });
  expect(shown.json()).toMatchObject({
    capabilities,
    modelfile: "FROM tiny:latest\nPARAMETER num_ctx 1000\n",
    parameters: "num_ctx                        1000",
    model_info: {
      "general.architecture": "llama",
      "general.basename": "tiny",
      "general.parameter_count": 30,
      "llama.context_length": 1000,
      "llama.embedding_length": 12,
    },
  });
  const byOldName = await show(world, { model: "", name: "tiny" });
  expect(byOldName.json()).toEqual(shown.json());
  expect((await show(world, { model: "" })).json()).toMatchObject({ param: "model" });
  const missing = await show(world, { model: "gpt" });
  expect(missing.statusCode).toBe(404);
  expect(missing.json()).toMatchObject({ error: "model 'gpt' not found", code: "not_found" });
});

test("a model that is here is pulled at once, and no other", async () => {
  const { app } = createWorld();
  const pull = (payload: object) => app.inject({ method: "POST", url: "/api/pull", payload });
  for (const name of ["tiny", "tiny:latest", "default"]) {
    const { headers, body } = await pull({ model: name, insecure: false });
    expect(headers["content-type"]).toContain("application/x-ndjson");
    expect(body).toBe('{"status":"success"}\n');
  }
  expect((await pull({ name: "tiny", stream: false })).json()).toEqual({ status: "success" });
  const missing = await pull({ model: "qwen3:8b" });
  expect([missing.statusCode, missing.json()]).toMatchObject([
    404,
    {
      error: expect.stringMatching(
        /^model 'qwen3:8b' not found\. Models are files here: fetch one /,
      ),
      param: "model",
    },
  ]);
  expect((await pull({})).json()).toMatchObject({ code: "missing_field", param: "model" });
});

test("an alias is shown under its own name", async () => {
  const world = createWorld({ model: { aliases: ["small"] } });
  for (const [called, name] of [
    ["small:latest", "small"],
    ["default", "tiny"],
  ] as const)
    expect((await show(world, { model: called })).json()).toMatchObject({
      modelfile: expect.stringContaining(`FROM ${name}:latest\n`),
      model_info: { "general.basename": name },
    });
});

test("the model for vectors is in the lists, too", async () => {
  const header = {
    architecture: "bert",
    quantization: "F16",
    trainedContext: 32_768,
    chatTemplate: null,
  };
  const file = { bytes: 70, created: 1_700_000_000, describe: () => header };
  const world = createWorld({ embedder: { ...fakeEmbedder, file } });
  const listed = async (url: string) => (await world.app.inject({ url })).json().models[1];
  const details = { format: "gguf", family: "bert", quantization_level: "F16" };
  const entry = { name: "vectors:latest", size: 70, details };
  expect(await listed("/api/tags")).toMatchObject({ ...entry, capabilities: ["embedding"] });
  expect(await listed("/api/ps")).toMatchObject({ ...entry, context_length: 512 });
  for (const model of ["vectors", "vectors:latest"])
    expect((await show(world, { model })).json()).toMatchObject({
      details,
      capabilities: ["embedding"],
      model_info: { "bert.context_length": 512, "bert.embedding_length": 8 },
    });
  const unlisted = createWorld({ embedder: fakeEmbedder });
  expect((await unlisted.app.inject({ url: "/api/tags" })).json().models).toHaveLength(1);
});
