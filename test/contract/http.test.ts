/** What is not the chat itself: keys, ids, other endpoints, and real sockets. */

import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { EngineStep } from "../../src/engine/types.ts";
import {
  createWorld,
  FakeChat,
  finish,
  idleStats,
  post,
  usage,
  type World,
} from "./fake-services.ts";
import { eventually } from "../support/eventually.ts";

const hello = { messages: [{ role: "user", content: "Hi" }] };
let open: World | undefined;

afterEach(async () => {
  await open?.app.close();
  open = undefined;
});

async function listen(world: World): Promise<string> {
  open = world;
  return world.app.listen({ port: 0, host: "127.0.0.1" });
}

/** Sends a chat request; resolves with the response once its headers are there. */
async function send(
  url: string,
  body: object,
): Promise<{ response: IncomingMessage; leave: () => void }> {
  const request = httpRequest(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
  });
  request.on("error", () => {});
  request.end(JSON.stringify(body));
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return { response, leave: () => request.destroy() };
}

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
    context_length: 1000,
    max_model_len: 1000,
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

test("a harmless request id is kept, another replaced", async () => {
  const { app } = createWorld();
  const idFor = async (id: string) =>
    (await app.inject({ url: "/health", headers: { "x-request-id": id } })).headers["x-request-id"];
  expect(await idFor("trace-7")).toBe("trace-7");
  expect(await idFor("a b\tc")).toMatch(/^req_[0-9a-f]{24}$/);
});

describe("over a socket", () => {
  test("each event is one write", async () => {
    const world = createWorld();
    world.chat.script = [
      { type: "content", text: "a" },
      { type: "content", text: "b" },
      finish("stop"),
    ];
    const url = await listen(world);
    const { response } = await send(url, { ...hello, stream: true });
    let text = "";
    for await (const piece of response) text += String(piece);
    // Chunked encoding keeps writes apart; the parser of Node joins none of them.
    expect(text.match(/data: /g)).toHaveLength(5);
    expect(text).toMatch(/\n\ndata: \[DONE\]\n\n$/);
  });

  test.each([false, true])(
    "a client that leaves cancels its generation (streamed: %s)",
    async (stream) => {
      const world = createWorld();
      world.chat.script = stream
        ? [{ type: "content", text: "a" }, { hang: true }]
        : [{ hang: true }];
      const url = await listen(world);
      const sent = send(url, { ...hello, stream }).catch(() => null);
      await eventually(() => expect(world.chat.requests).toHaveLength(1));
      if (stream) (await sent)!.leave();
      else world.app.server.closeAllConnections();
      await eventually(() => expect(world.chat.requests[0]!.signal!.aborted).toBe(true));
      await eventually(() => expect(world.chat.cancelledCount).toBe(1));
    },
  );

  test("a client that leaves the queue before the first token cancels too", async () => {
    const world = createWorld();
    world.chat.script = [{ hang: true }];
    const url = await listen(world);
    const controller = new AbortController();
    const body = JSON.stringify({ ...hello, stream: true });
    const headers = { "content-type": "application/json" };
    const response = fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers,
      body,
      signal: controller.signal,
    });
    await eventually(() => expect(world.chat.requests).toHaveLength(1));
    controller.abort();
    await expect(response).rejects.toThrow();
    await eventually(() => expect(world.chat.cancelledCount).toBe(1));
  });

  test("a long wait opens the stream and keeps it alive with comments", async () => {
    const world = createWorld({ config: { keepAliveMs: 20 } });
    world.chat.script = [{ hang: true }];
    const url = await listen(world);
    const { response, leave } = await send(url, { ...hello, stream: true });
    let text = "";
    response.on("data", (piece: Buffer) => (text += piece.toString()));
    response.on("error", () => {});
    await eventually(() => expect(text).toContain(": keep-alive\n\n: keep-alive\n\n"));
    leave();
  });

  test("a client that does not read holds its generation back", async () => {
    const world = createWorld();
    const piece = { type: "content" as const, text: "x".repeat(64 * 1024) };
    let taken = 0;
    world.chat.script = Object.assign(
      Array.from({ length: 2000 }, () => piece),
      {
        [Symbol.iterator]: function* () {
          for (; taken < 2000; taken++) yield piece;
          yield finish("stop");
        },
      },
    );
    const url = await listen(world);
    const { response, leave } = await send(url, { ...hello, stream: true });
    response.pause();
    // Buffers on the way fill, and then nothing more is taken.
    for (let before = -1; before !== taken;) {
      before = taken;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(1000);
    leave();
  });

  /** A client that takes nothing of a stream of 128 MiB. @returns what ends it */
  async function stopReading(world: World): Promise<() => void> {
    const piece = { type: "content" as const, text: "x".repeat(64 * 1024) };
    world.chat.script = [...Array.from({ length: 2000 }, () => piece), finish("stop")];
    const { response, leave } = await send(await listen(world), { ...hello, stream: true });
    response.on("error", () => {});
    response.pause();
    return leave;
  }

  test.each([
    ["for too long", { stalledMs: 100 }],
    // The fake engine always says that two wait.
    ["while others wait for its place", { stalledMs: 600_000, crowdedStalledMs: 100 }],
  ])("a reader that takes nothing %s is given up, and its generation", async (_when, config) => {
    const world = createWorld({ config });
    const leave = await stopReading(world);
    await eventually(() => expect(world.chat.cancelledCount).toBe(1));
    leave();
  });

  test.each([
    ["five minutes", 0, 295, 301],
    ["20 to 40 seconds while others wait", 2, 15, 41],
  ])("its time is %s", async (_time, waiting, kept, over) => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    const world = createWorld({ waiting });
    const leave = await stopReading(world);
    // Buffers on the way fill, then the stream waits for its reader.
    await eventually(() => expect(vi.getTimerCount()).toBeGreaterThan(0));
    await new Promise((resolve) => setTimeout(resolve, 300));
    for (let second = 0; second < kept; second++) vi.advanceTimersByTime(1000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(world.chat.cancelledCount).toBe(0);
    for (let second = kept; second < over; second++) vi.advanceTimersByTime(1000);
    await eventually(() => expect(world.chat.cancelledCount).toBe(1));
    leave();
    vi.useRealTimers();
  });

  test("closing the server ends a stream with an error and frees the port", async () => {
    const world = createWorld();
    world.chat.script = [{ type: "content", text: "a" }, { hang: true }];
    const url = await listen(world);
    const { response } = await send(url, { ...hello, stream: true });
    let text = "";
    response.on("data", (piece: Buffer) => (text += piece.toString()));
    await eventually(() => expect(text).toContain('"content":"a"'));
    const ended = once(response, "end");
    await world.app.close();
    await ended;
    expect(text).toContain('"code":"engine_closed"');
    await expect(fetch(`${url}/health`)).rejects.toThrow();
  });
});
