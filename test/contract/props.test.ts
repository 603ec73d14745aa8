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
    modalities: { vision: false, audio: false },
    chat_template: "{{ messages }}",
    bos_token: "<s>",
    eos_token: "</s>",
    build_info: expect.stringMatching(/^fermata b[0-9a-f]{10}$/),
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
