// Layers on another process's memory, through llama.cpp's RPC: the tokens are those of one process, in a hold, moved to
// host memory and back, and cut back to a fork. Needs `npm run build`.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine/engine.ts";
import type { EngineOptions } from "../../src/engine/types.ts";
import { collect, holdAtEnd, modelPath, readUntil, words } from "../support/engine.ts";
import { writeRandomKind } from "../support/random-kinds.ts";
import { freePort, startRpcServer, type StartedRpcServer } from "../support/rpc-server.ts";
import { greedy } from "../support/sampling.ts";

let peer: StartedRpcServer;
beforeAll(async () => {
  peer = await startRpcServer(await freePort(), "--mem=1024");
});
afterAll(() => peer.stop());

const shared = words(1, 200);
const promptOf = (seed: number): Int32Array => Int32Array.from([...shared, ...words(seed, 60)]);
const sampling = { ...greedy, ignoresEnd: true };

async function run(engine: Engine, seed: number): Promise<number[]> {
  const marks = Int32Array.of(shared.length);
  const generation = engine.generate({ prompt: promptOf(seed), marks, sampling, maxTokens: 24 });
  await collect(generation);
  return [...generation.tokens];
}

/** A round that waits while another sequence takes its slot, and the next round. */
async function hold(engine: Engine): Promise<number[]> {
  const [end] = await engine.tokenize("<|im_end|>");
  const script = Int32Array.from([...words(7, 9), end!]);
  const generation = engine.generate({
    prompt: promptOf(5),
    sampling: { ...sampling, script, samplesAfterScript: true },
    pause: holdAtEnd,
  });
  await readUntil(generation, "hold");
  await run(engine, 4);
  generation.resume({
    tokens: Int32Array.from(words(6, 40)),
    keepPending: true,
    maxTokens: 24,
  });
  for await (const event of generation) if (event.type === "hold") generation.release();
  return [...generation.tokens];
}

async function everything(options: EngineOptions) {
  const engine = await Engine.load({
    threads: 1,
    contextSize: 1024,
    parallel: 1,
    retainedSlots: 0,
    cacheRam: 64,
    audit: true,
    ...options,
  });
  const tokens = [
    await run(engine, 2),
    await run(engine, 3),
    await run(engine, 2),
    await hold(engine),
  ];
  const { ramRestores, prefilledTokens, forkUses } = engine.stats();
  const faults = await engine.checkIntegrity();
  const { deviceUse } = engine;
  await engine.close();
  return { tokens, counts: { ramRestores, prefilledTokens, forkUses }, faults, deviceUse };
}

describe.each([
  ["the shipped model", () => modelPath],
  ["a hybrid", () => writeRandomKind("lfm2")],
])("%s", (_name, path) => {
  it.each(["streams", "unified"] as const)("%s", async (kvLayout) => {
    const options = { modelPath: path(), kvLayout };
    const alone = await everything({ ...options, gpuLayers: 0, llama: { devices: ["none"] } });
    const rpcServers = [peer.endpoint];
    const spread = await everything({ ...options, gpuLayers: 2, llama: { rpcServers } });
    const away = await everything({ ...options, llama: { rpcServers, devices: ["RPC0"] } });
    expect(alone.deviceUse.devices).toEqual([]);
    for (const { deviceUse, faults, tokens, counts } of [spread, away]) {
      expect(tokens).toEqual(alone.tokens);
      expect(counts).toEqual(alone.counts);
      expect(counts.ramRestores).toBeGreaterThan(0);
      expect(faults).toBe("");
      expect(deviceUse.devices).toEqual([
        { name: `RPC0 at ${peer.endpoint}`, bytes: expect.any(Number) },
      ]);
    }
    expect(spread.deviceUse.layers).toBe(2);
    // As many as fit: all.
    expect(away.deviceUse.layers).toBe(-1);
    expect(away.deviceUse.devices[0]!.bytes).toBeGreaterThan(spread.deviceUse.devices[0]!.bytes);
  });
});

it("a server with less memory than the model gets fewer layers", async () => {
  const small = await startRpcServer(await freePort(), "--mem=524");
  const engine = await Engine.load({
    modelPath,
    contextSize: 512,
    parallel: 1,
    llama: { rpcServers: [small.endpoint], devices: ["RPC1"] },
  });
  const { layers } = engine.deviceUse;
  await engine.close();
  await small.stop("SIGKILL");
  // -1 would be all.
  expect(layers).toBeGreaterThan(0);
});
