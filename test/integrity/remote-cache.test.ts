// Engines that share their sequences through Redis: what one has computed, the other fetches and goes on with, token for
// token. Whatever is wrong with the place or with what is there, is counted and computed.
import { afterEach, beforeEach, expect, it } from "vitest";
import { Engine } from "../../src/engine/engine.ts";
import type { EngineOptions } from "../../src/engine/types.ts";
import { collect, modelPath, words } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { FakeRedis } from "../support/fake-redis.ts";
import { writeRandomKind } from "../support/random-kinds.ts";
import { greedy } from "../support/sampling.ts";

let redis: FakeRedis;
const engines: Engine[] = [];
beforeEach(async () => {
  redis = new FakeRedis();
  await redis.start();
});
afterEach(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.close()));
  await redis.stop();
});

async function load(options: Partial<EngineOptions> = {}): Promise<Engine> {
  const engine = await Engine.load({
    modelPath,
    threads: 1,
    contextSize: 1024,
    parallel: 1,
    retainedSlots: 1,
    cacheRam: 64,
    cacheDisk: 256,
    cacheRemote: redis.url,
    audit: true,
    ...options,
  });
  engines.push(engine);
  return engine;
}

const prompt = Int32Array.from(words(1, 300));

async function run(
  engine: Engine,
  tokens: ArrayLike<number>,
  owner = "someone",
  shared?: number,
): Promise<number[]> {
  const generation = engine.generate({
    prompt: Int32Array.from(tokens),
    ...(shared === undefined ? {} : { shared, marks: Int32Array.of(shared) }),
    owner,
    sampling: { ...greedy, ignoresEnd: true },
    maxTokens: 16,
  });
  await collect(generation);
  return [...generation.tokens];
}

/** The engine has heard of so many sequences that others wrote. */
const knows = (engine: Engine, files: number): Promise<void> =>
  eventually(() => expect(engine.stats().diskFiles).toBe(files));

/** An engine computes the conversation and ends, which writes it. @returns its tokens */
async function left(
  options: Partial<EngineOptions> = {},
  what: ArrayLike<number> = prompt,
): Promise<number[]> {
  const first = await load(options);
  await eventually(() => expect(redis.calls.get("XREAD")).toBeGreaterThan(0));
  const tokens = await run(first, what);
  await first.close();
  engines.length = 0;
  expect(redis.log).toHaveLength(1);
  return tokens;
}

it.each([
  ["the shipped model", () => modelPath],
  ["a hybrid", () => writeRandomKind("lfm2")],
])("%s: a conversation moves, and only its new rows are computed", async (_name, path) => {
  const options = { modelPath: path() };
  // It is there before the conversation is.
  const second = await load(options);
  const first = await load(options);
  const tokens = await run(first, prompt);
  await first.close();
  await knows(second, 1);
  const next = [...tokens, ...words(2, 20)];
  const continued = await run(second, next);
  const { diskRestores, prefilledTokens } = second.stats();
  expect(diskRestores).toBe(1);
  // The last token of the answer was never in the cache; with it come the new ones, and those that are decoded.
  expect(prefilledTokens).toBeLessThan(20 + 16 + 8);
  const alone = await load({ ...options, cacheRemote: undefined, cacheDisk: 0 });
  expect(continued).toEqual(await run(alone, next));
  expect(await second.checkIntegrity()).toBe("");
});

it("another owner's is not used, and other options' is not seen", async () => {
  const tokens = await left();
  const second = await load();
  await knows(second, 1);
  await run(second, tokens, "somebody else");
  expect(second.stats().diskRestores).toBe(0);
  expect(second.stats().cachedTokens).toBe(0);
  const longer = await load({ contextSize: 2048 });
  const reads = redis.calls.get("XREAD")!;
  await eventually(() => expect(redis.calls.get("XREAD")).toBeGreaterThan(reads + 3));
  expect(longer.stats()).toMatchObject({ diskFiles: 0, diskForeign: 0 });
});

it("announcements have the tokens, and expire with the last sequence", async () => {
  const tokens = await left();
  const { key } = redis.log[0]!;
  expect(redis.expiries).toEqual(new Map([[key, 3_600_000]]));
  redis.expiries.clear();
  const second = await load();
  await knows(second, 1);
  await run(second, tokens);
  expect(second.stats().diskRestores).toBe(1);
  expect(redis.expiries.get(key)).toBe(3_600_000);
});

it("a value that was changed is dropped and counted, and the prompt computed", async () => {
  const tokens = await left();
  for (const value of redis.values.values()) value[value.length >> 1]! ^= 1;
  const second = await load();
  await knows(second, 1);
  const continued = await run(second, tokens);
  expect(second.stats()).toMatchObject({ diskRestores: 0, diskDamaged: 1, diskFiles: 0 });
  expect(continued).toEqual(
    await run(await load({ cacheRemote: undefined, cacheDisk: 0 }), tokens),
  );
});

it("announcements that make no sense are counted; a value that has expired is computed", async () => {
  const tokens = await left();
  const [entry] = redis.log;
  redis.log.push({ ...entry!, id: "2-0", name: "short", head: entry!.head.subarray(0, 70) });
  const foreign = Buffer.from(entry!.head);
  foreign[16]! ^= 1;
  redis.log.push({ ...entry!, id: "3-0", name: "foreign", head: foreign });
  const wrong = Buffer.from(entry!.head);
  wrong[wrong.length - 1]! ^= 1;
  redis.log.push({ ...entry!, id: "4-0", name: "wrong", head: wrong });
  redis.values.clear();
  const second = await load();
  await eventually(() =>
    expect(second.stats()).toMatchObject({ diskFiles: 1, diskDamaged: 2, diskForeign: 1 }),
  );
  const before = second.stats().diskFull;
  await run(second, tokens);
  expect(second.stats()).toMatchObject({ diskRestores: 0, diskFiles: 0, diskFull: before + 1 });
});

it("what cannot be announced is taken back", async () => {
  redis.refused.add("XADD");
  const engine = await load();
  await eventually(() => expect(redis.calls.get("XREAD")).toBeGreaterThan(0));
  await run(engine, prompt);
  await engine.close();
  engines.length = 0;
  expect(redis.calls.get("PSETEX")).toBe(1);
  expect(redis.calls.get("XADD")).toBe(1);
  expect(redis.values.size).toBe(0);
});

it("a server that is away: nothing fails, it is said, and found when it is back", async () => {
  const tokens = await left();
  await redis.stop();
  const second = await load();
  await eventually(() => expect(second.stats().diskFault).toMatch(/redis:.*refused/i));
  expect(second.stats().diskFault).not.toContain("@");
  const alone = await run(second, tokens);
  await redis.start();
  await knows(second, 1);
  await run(second, words(3, 300));
  await run(second, words(4, 300));
  expect(await run(second, tokens)).toEqual(alone);
});

it("a key is sent; a wrong one is said", async () => {
  redis.password = "secret";
  await left();
  const second = await load({ cacheRemote: redis.url.replace("secret", "other") });
  await eventually(() => expect(second.stats().diskFault).toMatch(/WRONGPASS/));
  expect(second.stats().diskFiles).toBe(0);
});

/** A system message with tools, as it were, and what users say behind it. */
const shared = words(5, 600);
const asked = (user: number): number[] => [...shared, ...words(user, 20)];
const askedOf = (engine: Engine, user: number): Promise<number[]> =>
  run(engine, asked(user), "someone", shared.length);
const alone = async (options: Partial<EngineOptions>, users: number[]): Promise<number[][]> => {
  const engine = await load({ ...options, cacheRemote: undefined, cacheDisk: 0 });
  const answers: number[][] = [];
  for (const user of users) answers.push(await run(engine, asked(user)));
  return answers;
};
/** Each engine has spoken with Redis. */
async function three(options: Partial<EngineOptions> = {}): Promise<Engine[]> {
  const all: Engine[] = [];
  for (let count = 1; count <= 3; count++) {
    const reads = redis.calls.get("XREAD") ?? 0;
    all.push(await load(options));
    await eventually(() => expect(redis.calls.get("XREAD")).toBeGreaterThan(reads + count));
  }
  return all;
}
const claims = (): string[] => [...redis.values.keys()].filter((key) => key.includes(":claim:"));
const rows = (all: Engine[]): number =>
  all.reduce((sum, engine) => sum + engine.stats().prefilledTokens, 0);

it.each([
  ["the shipped model", () => modelPath],
  ["a hybrid", () => writeRandomKind("lfm2")],
])("%s: what three prompts begin with is computed once, of three engines", async (_name, path) => {
  const options = { modelPath: path() };
  const all = await three(options);
  const answers = await Promise.all(all.map((engine, at) => askedOf(engine, 11 + at)));
  expect(rows(all)).toBe(shared.length + 3 * 20);
  await eventually(() => expect(claims()).toEqual([]));
  // Nobody had to wait for a rest of three seconds.
  expect(redis.log[0]!.head.length).toBe(64 + 4 * shared.length);
  expect(answers).toEqual(await alone(options, [11, 12, 13]));
  for (const engine of all) expect(await engine.checkIntegrity()).toBe("");
});

it("an engine that dies with a claim is not waited for", async () => {
  const [first] = await three();
  await askedOf(first!, 11);
  await eventually(() => expect(claims()).toEqual([]));
  // As if another one had died before it wrote.
  redis.values.clear();
  redis.log.length = 0;
  redis.values.set(redis.claimed[0]!, Buffer.from("another"));
  const second = await load();
  const calls = redis.calls.get("XREAD")!;
  await eventually(() => expect(redis.calls.get("XREAD")).toBeGreaterThan(calls + 3));
  const waits = askedOf(second, 12);
  const tries = redis.claimed.length;
  await eventually(() => expect(redis.claimed.length).toBeGreaterThan(tries + 3));
  expect(second.stats()).toMatchObject({ prefilledTokens: 0, waiting: 1 });
  redis.values.delete(redis.claimed[0]!);
  expect([await waits]).toEqual(await alone({}, [12]));
  expect(second.stats().prefilledTokens).toBe(shared.length + 20);
});

it("a claim that has become another engine's is not given back for it", async () => {
  const [first] = await three();
  redis.takesClaims = true;
  await askedOf(first!, 11);
  await eventually(() => expect(redis.calls.get("EVAL")).toBeGreaterThan(0));
  expect(claims().map((key) => String(redis.values.get(key)))).toEqual(["another"]);
});

it("others are asked between the pieces of a sequence that is being read", async () => {
  const options = { parallel: 2, contextSize: 2560 };
  const tokens = await left(options, words(1, 1800));
  expect(redis.values.size).toBe(2);
  const second = await load(options);
  await knows(second, 1);
  const reads: (() => void)[] = [];
  redis.delay = async (command) => {
    if (command === "GETEX") await new Promise<void>((resolve) => reads.push(resolve));
  };
  const fetched = run(second, [...tokens, ...words(2, 20)]);
  await eventually(() => expect(reads).toHaveLength(1));
  const computed = askedOf(second, 11);
  // They are asked ten times a second at most.
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(redis.claimed).toEqual([]);
  reads[0]!();
  await eventually(() => expect(reads).toHaveLength(2));
  expect(redis.claimed).toHaveLength(1);
  redis.delay = () => Promise.resolve();
  reads[1]!();
  await Promise.all([fetched, computed]);
  await eventually(() => expect(claims()).toEqual([]));
});

it("a server that goes away while a prompt waits for another engine: it is computed", async () => {
  const [first, second] = await three();
  await askedOf(first!, 11);
  await eventually(() => expect(claims()).toEqual([]));
  await askedOf(second!, 12);
  const other = [...words(6, 600), ...words(7, 20)];
  redis.holdsClaims = true;
  const waits = run(second!, other, "someone", 600);
  const tries = redis.claimed.length;
  await eventually(() => expect(redis.claimed.length).toBeGreaterThan(tries + 3));
  await redis.stop();
  const answer = await waits;
  const engine = await load({ cacheRemote: undefined, cacheDisk: 0 });
  expect(answer).toEqual(await run(engine, other));
});
