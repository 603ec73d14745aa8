/** What is not the chat itself: keys, ids, other endpoints, and real sockets. */

import { describe, expect, test } from "vitest";
import type { EngineStep } from "../../src/engine/types.ts";
import { createWorld, FakeChat, post } from "./fake-services.ts";
import { idleStats, usage } from "./fake-figures.ts";

const hello = { messages: [{ role: "user", content: "Hi" }] };

describe("API keys", () => {
  const world = () => createWorld({ config: { apiKeys: ["k1", "k2"] } });

  test.each([
    [{ authorization: "Bearer k1" }, 200],
    [{ authorization: "bearer k2" }, 200],
    [{ "x-api-key": "k2" }, 200],
    [{ authorization: "Bearer wrong" }, 401],
    [{ authorization: "Basic k1" }, 401],
    [{}, 401],
  ])("%j: %i", async (headers, status) => {
    const response = await world().app.inject({
      url: "/v1/models",
      headers: headers as Record<string, string>,
    });
    expect(response.statusCode).toBe(status);
    if (status !== 401) return;
    expect(response.json().error).toMatchObject({
      code: "unauthorized",
      type: "invalid_request_error",
    });
    expect(response.headers["www-authenticate"]).toBe("Bearer");
  });

  test("health is open, metrics and unknown routes are not", async () => {
    const { app } = world();
    expect((await app.inject({ url: "/health" })).statusCode).toBe(200);
    expect((await app.inject({ url: "/metrics" })).statusCode).toBe(401);
    expect((await app.inject({ url: "/nowhere" })).statusCode).toBe(401);
  });

  test("the owner tells callers apart and is not the key", async () => {
    const { app, chat } = world();
    await post(app, hello, { authorization: "Bearer k1" });
    await post(app, hello, { "x-api-key": "k2" });
    const [first, second] = chat.requests.map(({ owner }) => owner);
    expect(first).not.toBe(second);
    expect(`${first}${second}`).not.toMatch(/k1|k2/);
  });
});

test("models", async () => {
  const { app } = createWorld();
  const model = {
    id: "tiny",
    object: "model",
    created: 1_700_000_000,
    owned_by: "fermata",
    // Anthropic's.
    type: "model",
    display_name: "tiny",
    lifecycle: "active",
    created_at: "2023-11-14T22:13:20.000Z",
    // vLLM's.
    root: "tiny",
    context_length: 1000,
    max_model_len: 1000,
    max_input_tokens: 1000,
    max_tokens: 1000,
    meta: {
      n_vocab: 500,
      vocab_type: 2,
      n_ctx: 1000,
      n_ctx_train: 2000,
      n_embd: 12,
      n_params: 30,
      size: 60,
      ftype: "Q4_K - Medium",
    },
  };
  expect((await app.inject({ url: "/v1/models" })).json()).toEqual({
    object: "list",
    data: [model],
    first_id: "tiny",
    last_id: "tiny",
    has_more: false,
    // llama-server's list beside OpenAI's.
    models: [expect.objectContaining({ model: "tiny", name: "tiny" })],
  });
  expect((await app.inject({ url: "/v1/models/tiny" })).json()).toEqual(model);
  const missing = await app.inject({ url: "/v1/models/large" });
  expect(missing.statusCode).toBe(404);
  expect(missing.json().error).toMatchObject({ code: "not_found", param: "model" });
});

test("health", async () => {
  expect((await createWorld().app.inject({ url: "/health" })).json()).toEqual({
    status: "ok",
    model: "tiny",
    step_age_ms: 0,
  });
});

test.each([
  [4000, 200, "ok", 200, "ready"],
  [6000, 200, "ok", 503, "busy"],
  [10_001, 503, "hung", 503, "busy"],
])(
  "a step of %i ms: /health %i %s, /ready %i %s",
  async (age, health, state, ready, readyState) => {
    const { app } = createWorld({
      stepAgeMs: () => age,
      config: { hungStepMs: 10_000, apiKeys: ["k"] },
    });
    const live = await app.inject({ url: "/health" });
    expect([live.statusCode, live.json()]).toEqual([
      health,
      { status: state, model: "tiny", step_age_ms: age },
    ]);
    const now = await app.inject({ url: "/ready" });
    expect([now.statusCode, now.json()]).toEqual([
      ready,
      { status: readyState, step_age_ms: age, running: 1, waiting: 2 },
    ]);
  },
);

test("metrics publish the engine's counters", async () => {
  const { app, step } = createWorld();
  await post(app, hello);
  await app.inject({ url: "/nowhere" });
  step({ prefillRows: 5, decodeRows: 2, microBatches: 3, copies: 0, milliseconds: 12 });
  const response = await app.inject({ url: "/metrics" });
  expect(response.headers["content-type"]).toContain("text/plain");
  for (const line of [
    "fermata_prompt_tokens_total 25",
    "fermata_prefilled_tokens_total 13",
    "fermata_cached_tokens_total 12",
    "fermata_generated_tokens_total 7",
    "fermata_recomputed_tokens_total 0",
    "fermata_extended_tokens_total 4",
    "fermata_drafted_rows_total 6",
    "fermata_accepted_rows_total 5",
    "fermata_draft_model_rows_total 9",
    "fermata_discarded_tokens_total 1",
    "fermata_unextended_holds_total 4",
    "fermata_template_rerenders_total 2",
    'fermata_sequences{state="running"} 1',
    'fermata_sequences{state="waiting"} 2',
    'fermata_sequences{state="held"} 3',
    'fermata_kv_cells{state="used"} 40',
    'fermata_kv_cells{state="retained"} 50',
    'fermata_kv_cells{state="free"} 60',
    'fermata_ram_bytes{state="used"} 70',
    'fermata_ram_bytes{state="forks"} 5',
    'fermata_ram_bytes{state="free"} 25',
    "fermata_compute_threads 2",
    "fermata_ram_saves_total 5",
    "fermata_ram_restores_total 4",
    "fermata_ram_drops_total 1",
    "fermata_fork_saves_total 4",
    "fermata_fork_uses_total 3",
    "fermata_fork_drops_total 1",
    'fermata_disk_bytes{state="free"} 120',
    "fermata_disk_files 3",
    'fermata_turn_bytes{state="used"} 300',
    'fermata_turn_bytes{state="free"} 700',
    "fermata_disk_restores_total 2",
    'fermata_disk_drops_total{reason="full"} 7',
    'fermata_disk_drops_total{reason="busy"} 11',
    "fermata_step_seconds_sum 0.012",
    "fermata_micro_batches_per_step_sum 3",
    'fermata_requests_total{endpoint="/v1/chat/completions",status="200"} 1',
    'fermata_requests_total{endpoint="unknown",status="404"} 1',
  ]) {
    expect(response.body.split("\n")).toContain(line);
  }
});

test("inference gateways find vLLM's names", async () => {
  const { app } = createWorld();
  await post(app, hello);
  const lines = (await app.inject({ url: "/metrics" })).body.split("\n");
  expect(lines).toEqual(
    expect.arrayContaining([
      "# TYPE vllm:num_requests_waiting gauge",
      'vllm:num_requests_running{model_name="tiny"} 1',
      'vllm:num_requests_waiting{model_name="tiny"} 2',
      // 40 of 150 cells; 50 more are retained.
      `vllm:kv_cache_usage_perc{model_name="tiny"} ${40 / 150}`,
      `vllm:gpu_cache_usage_perc{model_name="tiny"} ${40 / 150}`,
      'vllm:cache_config_info{model_name="tiny",block_size="16",num_gpu_blocks="9"} 1',
      "# TYPE vllm:prefix_cache_queries_total counter",
      'vllm:prefix_cache_queries_total{model_name="tiny"} 25',
      'vllm:prefix_cache_hits_total{model_name="tiny"} 12',
    ]),
  );
});

test("a replica's name is in its header and in the ids that name what it keeps", async () => {
  const { app } = createWorld({ config: { replica: "r-1" } });
  const answer = await post(app, hello);
  expect(answer.headers["x-fermata-replica"]).toBe("r-1");
  expect(answer.json().id).toMatch(/^chatcmpl-r-1\.[0-9a-f]{24}$/);
  const made = await app.inject({ method: "POST", url: "/api/conversations", payload: {} });
  const { id } = made.json() as { id: string };
  expect(id).toMatch(/^conv_r-1\.[0-9a-f]{48}$/);
  expect((await app.inject({ url: `/api/conversations/${id}` })).statusCode).toBe(200);
  expect((await app.inject({ url: "/nowhere" })).headers["x-fermata-replica"]).toBe("r-1");
});

test("an engine that agents have to themselves is measured under its model's name", async () => {
  const steps: ((step: EngineStep) => void)[] = [];
  const stats = { ...idleStats, ...usage, running: 1, generatedTokens: 3 };
  const engine = {
    stats: () => stats,
    onStep: (listener: (step: EngineStep) => void) => steps.push(listener),
    onTokenInterval: () => {},
  };
  const { app } = createWorld({
    agentEngines: [{ model: "helper", engine, chat: new FakeChat() }],
  });
  steps[0]!({ prefillRows: 0, decodeRows: 1, microBatches: 1, copies: 0, milliseconds: 7 });
  const lines = (await app.inject({ url: "/metrics" })).body.split("\n");
  expect(lines).toEqual(
    expect.arrayContaining([
      "fermata_generated_tokens_total 7",
      'fermata_generated_tokens_total{model="helper"} 3',
      'fermata_sequences{state="running"} 1',
      'fermata_sequences{state="running",model="helper"} 1',
      'fermata_step_seconds_sum{model="helper"} 0.007',
    ]),
  );
  await app.close();
});

test("an engine that agents have to themselves counts for /health and /ready", async () => {
  const stats = { ...idleStats, ...usage, running: 2, waiting: 1, stepAgeMs: 6000 };
  const engine = { stats: () => stats, onStep: () => {}, onTokenInterval: () => {} };
  const { app } = createWorld({
    agentEngines: [{ model: "helper", engine, chat: new FakeChat() }],
    config: { hungStepMs: 5000 },
  });
  const health = await app.inject({ url: "/health" });
  expect([health.statusCode, health.json().status]).toEqual([503, "hung"]);
  expect((await app.inject({ url: "/ready" })).json()).toEqual({
    status: "busy",
    step_age_ms: 6000,
    running: 3,
    waiting: 3,
  });
});

test("a harmless request id is kept, another replaced", async () => {
  const { app } = createWorld();
  const idFor = async (id: string) =>
    (await app.inject({ url: "/health", headers: { "x-request-id": id } })).headers["x-request-id"];
  expect(await idFor("trace-7")).toBe("trace-7");
  expect(await idFor("a b\tc")).toMatch(/^req_[0-9a-f]{24}$/);
});
