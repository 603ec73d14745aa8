/** GET /props and /slots, as llama-server has them. */

import { expect, test } from "vitest";
import { createWorld } from "./fake-services.ts";

test("props tell what a client of llama-server asks for before it begins", async () => {
  const { app } = createWorld({ model: { parallel: 2 } });
  const response = await app.inject({ url: "/props" });
  expect(response.statusCode).toBe(200);
  expect(response.json()).toMatchObject({
    default_generation_settings: {
      params: { temperature: 0.7, top_k: 40, repeat_last_n: 64, n_predict: -1, seed: 4294967295 },
      n_ctx: 1000,
    },
    total_slots: 2,
    model_alias: "tiny",
    model_path: "tiny",
    model_ftype: "Q4_K - Medium",
    ui: false,
    modalities: { vision: false, audio: false },
    chat_template: "{{ messages }}",
    bos_token: "<s>",
    eos_token: "</s>",
    build_info: expect.stringMatching(/^fermata b[0-9a-f]{10}$/),
  });
});

test("what messages may have is what this server brings into the template's form", async () => {
  const caps = async (model: object) => {
    const { app } = createWorld({ model });
    return (await app.inject({ url: "/props" })).json().chat_template_caps;
  };
  const names = "string_content typed_content system_role tools tool_calls parallel_tool_calls";
  const more = "object_arguments preserve_reasoning reasoning_effort";
  const all = (value: boolean) =>
    Object.fromEntries(`${names} ${more}`.split(" ").map((name) => [`supports_${name}`, value]));
  expect(await caps({ toolSection: "generic" })).toEqual(all(true));
  expect(await caps({ toolSection: null })).toEqual(all(false));
});

test("models are told as llama-server tells them, and its list in Ollama's form", async () => {
  const { app } = createWorld({ model: { aliases: ["small"], toolSection: "template" } });
  const { data, models } = (await app.inject({ url: "/v1/models" })).json();
  expect(data[0].meta).toEqual({
    n_vocab: 500,
    n_ctx: 1000,
    n_ctx_train: 2000,
    n_params: 30,
    size: 60,
    vocab_type: 2,
    n_embd: 12,
    ftype: "Q4_K - Medium",
  });
  expect(models.map(({ name }: { name: string }) => name)).toEqual(["tiny", "small"]);
  expect(models[0]).toMatchObject({
    model: "tiny",
    type: "model",
    capabilities: ["completion", "tools", "thinking"],
    details: { family: "llama", quantization_level: "Q4_K_M" },
  });
});

test("as many slots as sequences may run, and the running ones are busy", async () => {
  const { app } = createWorld({ model: { parallel: 2 } });
  const slot = { n_ctx: 1000, speculative: false };
  expect((await app.inject({ url: "/slots" })).json()).toEqual([
    { id: 0, ...slot, is_processing: true },
    { id: 1, ...slot, is_processing: false },
  ]);
  expect((await app.inject({ url: "/slots?fail_on_no_slot=1" })).statusCode).toBe(200);
});

test("a load balancer that asks for a free slot is told that there is none", async () => {
  const { app } = createWorld();
  const response = await app.inject({ url: "/slots?fail_on_no_slot=1" });
  expect(response.statusCode).toBe(503);
  expect(response.json().error.code).toBe("no_free_slot");
  expect((await app.inject({ url: "/slots" })).json()).toHaveLength(1);
});

test("both need a key where one is set", async () => {
  const { app } = createWorld({ config: { apiKeys: ["k"] } });
  for (const url of ["/props", "/slots"]) {
    expect((await app.inject({ url })).statusCode).toBe(401);
    const headers = { authorization: "Bearer k" };
    expect((await app.inject({ url, headers })).statusCode).toBe(200);
  }
});
