// Requests made from the OpenAPI document, over HTTP and through the engine: no fault, and nothing is left
// of any. FERMATA_ENGINE_FUZZ_RUNS sets how many an endpoint gets.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Embedder } from "../../src/engine/embedder.ts";
import type { OpenApiDocument } from "../../src/server/http/openapi.ts";
import { writeEmbeddingModel } from "../support/embedding-model.ts";
import { memoryInUse } from "../support/memory-in-use.ts";
import { existingThing, fuzz, fuzzedOperations, type FuzzTarget } from "../support/openapi-fuzz.ts";
import { type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

const runs = Number(process.env["FERMATA_ENGINE_FUZZ_RUNS"] ?? 12);
const seed = Number(process.env["FERMATA_FUZZ_SEED"] ?? 5);
const contextSize = 1024;
const slots = 4;

let folder: string;
let server: ScriptedServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fermata-fuzz-"));
  const modelPath = await writeEmbeddingModel(join(folder, "mean.gguf"), "mean");
  const embedder = Object.assign(await Embedder.load({ modelPath, threads: 1 }), { id: "mean" });
  server = await startScriptedServer({
    engine: { contextSize, parallel: slots, threads: 1 },
    embedder,
    store: true,
    config: { responsesToolTimeoutMs: 50, maxToolOutputBytes: 4096 },
  });
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

const limits = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

/** What a test has time for: a few tokens, a few choices. Values of other kinds stay as they are. */
function tame(body: unknown): unknown {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return body;
  const copy: Record<string, unknown> = { ...body };
  for (const name of limits) {
    const value = copy[name];
    if (value === undefined || value === null) copy[name] = 4;
    else if (typeof value === "number" && value > 6) copy[name] = 6;
  }
  if (typeof copy["n"] === "number" && copy["n"] > 3) copy["n"] = 3;
  return copy;
}

async function call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const reply = await fetch(`${server.url}${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
  return (await reply.json()) as Record<string, unknown>;
}

const target: FuzzTarget = {
  existing: ({ path }) => existingThing(path, call, (body, limit) => ({ ...body, [limit]: 2 })),
  async send(method, url, body) {
    const reply = await fetch(`${server.url}${url}`, {
      method,
      ...(body === undefined ? {} : { body, headers: { "content-type": "application/json" } }),
    });
    const type = reply.headers.get("content-type") ?? "";
    return { status: reply.status, type, body: await reply.text() };
  },
  tame,
};

test("every endpoint", { timeout: 120_000 + runs * 30_000 }, async () => {
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as OpenApiDocument;
  const operations = fuzzedOperations(document);
  let answered = 0;
  let halfWay = 0;
  for (const [index, operation] of operations.entries()) {
    if (index === Math.floor(operations.length / 2)) halfWay = (await memoryInUse()).rss;
    answered += (await fuzz(operation, target, { runs, seed })).answered;
  }
  expect(answered).toBeGreaterThan(operations.length);

  const stats = await server.settledStats();
  expect(stats).toMatchObject({ running: 0, waiting: 0, held: 0, cellsUsed: 0 });
  expect(stats.cellsRetained + stats.cellsFree).toBe(2 * slots * contextSize);
  expect(await server.engine.checkIntegrity()).toBe("");
  const after = (await memoryInUse()).rss;
  console.log(
    `${operations.length} endpoints, ${runs} requests each: ${answered} answered; RSS ${Math.round(halfWay / 2 ** 20)} MiB half way, ${Math.round(after / 2 ** 20)} MiB after`,
  );
  expect(after / halfWay).toBeLessThan(1.25);
});
