import { describe, expect, it } from "vitest";
import { BatchRouter } from "../../../src/engine/batch-router.ts";
import { Engine } from "../../../src/engine/engine.ts";
import type { GenerationEvent } from "../../../src/engine/types.ts";
import type { NativeEvent } from "../../../src/native/addon-types.ts";
import { greedy } from "../../support/sampling.ts";
import {
  FakeNativeEngine,
  fakeUsage,
  finishedEvent,
  pauseEvent,
  tokensEvent,
} from "./fake-native-engine.ts";

const prompt = new Int32Array([1, 2]);

function setUp(maxQueue = 20) {
  const native = new FakeNativeEngine();
  const router = new BatchRouter();
  const engine = new Engine(native, router, {
    retain: true,
    ownersShare: false,
    isShared: false,
    maxQueue,
    deviceUse: { layers: 0, devices: [] },
  });
  const publish = (...events: NativeEvent[]) => router.accept({ events, steps: [] });
  const generate = (signal?: AbortSignal, owner?: string) =>
    engine.generate({ prompt, sampling: greedy, signal, owner });
  return { native, router, engine, publish, generate };
}

async function readAll(generation: AsyncIterable<GenerationEvent>): Promise<GenerationEvent[]> {
  const events: GenerationEvent[] = [];
  for await (const event of generation) events.push(event);
  return events;
}

describe("a generation", () => {
  it("acknowledges tokens when they are read, not when they arrive", async () => {
    const { native, publish, generate } = setUp();
    const generation = generate();
    const iterator = generation[Symbol.asyncIterator]();
    publish(tokensEvent(1, "ab", 5, 6), tokensEvent(1, "c", 7));
    expect(native.calls).toEqual([]);
    expect(generation.tokens).toEqual([1, 2, 5, 6, 7]);
    await iterator.next();
    expect(native.calls).toEqual([["acknowledge", 1, 2]]);
    await iterator.next();
    const waiting = iterator.next();
    publish(tokensEvent(1, "d", 8));
    expect(await waiting).toMatchObject({ value: { type: "text", text: "d" } });
    expect(native.calls).toEqual([
      ["acknowledge", 1, 2],
      ["acknowledge", 1, 1],
      ["acknowledge", 1, 1],
    ]);
  });

  it("keeps only the latest progress that nobody read", async () => {
    const { publish, generate } = setUp();
    const generation = generate();
    for (const done of [1, 2, 3]) publish({ kind: "progress", id: 1, done, total: 3 });
    publish(finishedEvent(1, "end"));
    const usage = fakeUsage;
    expect(await readAll(generation)).toEqual([
      { type: "progress", done: 3, total: 3, cached: 0 },
      { type: "text", text: "end", tokens: new Int32Array(0) },
      { type: "finish", reason: "end", stopString: "", usage },
    ]);
  });

  it("does not join a character that a hold split with the text behind other tokens", async () => {
    const { publish, generate } = setUp();
    const generation = generate();
    const [first] = new TextEncoder().encode("é");
    publish(tokensEvent(1, Uint8Array.of(first!), 5));
    publish({ ...pauseEvent(1, true), reason: "requested" } as NativeEvent);
    generation.resume({ tokens: new Int32Array([9]), keepPending: false });
    publish(tokensEvent(1, "Sun", 6), finishedEvent(1));
    const texts = (await readAll(generation)).map((event) =>
      event.type === "text" ? event.text : "",
    );
    expect(texts.join("")).toBe("Sun");
  });

  it("joins a character whose bytes are spread over events", async () => {
    const { publish, generate } = setUp();
    const generation = generate();
    const [first, ...rest] = new TextEncoder().encode("é");
    publish(tokensEvent(1, Uint8Array.of(first!), 5), tokensEvent(1, Uint8Array.from(rest), 6));
    publish(finishedEvent(1));
    const texts = (await readAll(generation)).filter((event) => event.type === "text");
    expect(texts.map(({ text }) => text)).toEqual(["", "é"]);
  });

  it("tells with its progress how much of the prompt needs no computing", async () => {
    const { publish, generate } = setUp();
    const read = readAll(generate());
    publish({ kind: "progress", id: 1, done: 1, total: 1 }, finishedEvent(1));
    expect((await read)[0]).toEqual({ type: "progress", done: 1, total: 1, cached: 1 });
  });

  it("takes a limit above the addon's numbers for none", () => {
    const { native, engine } = setUp();
    for (const maxTokens of [2 ** 31 - 1, 2 ** 31, Number.MAX_SAFE_INTEGER])
      engine.generate({ prompt, sampling: greedy, maxTokens });
    expect(native.submits.map(({ maxTokens }) => maxTokens)).toEqual(Array(3).fill(2 ** 31 - 1));
    expect(() => engine.generate({ prompt, sampling: greedy, maxTokens: 0 })).toThrow("at least 1");
  });

  it("resumes only what is held, and counts the pending token", async () => {
    const { native, publish, generate } = setUp();
    const generation = generate();
    const tokens = new Int32Array([9]);
    const notHeld = expect.objectContaining({ code: "not_held" });
    expect(() => generation.resume({ tokens, keepPending: true })).toThrow(notHeld);
    publish(tokensEvent(1, "", 5), pauseEvent(1, true));
    generation.resume({ tokens, keepPending: false, maxTokens: 3 });
    expect(native.calls).toEqual([["resume", { id: 1, tokens, keepPending: false, maxTokens: 3 }]]);
    expect(generation.tokens).toEqual([1, 2, 9]);
    expect(() => generation.resume({ tokens, keepPending: true })).toThrow(notHeld);
  });

  it("is extended while it is held, and tells how far that is, once", async () => {
    const { native, publish, generate } = setUp();
    const generation = generate();
    const options = { tokens: new Int32Array([9]), keepPending: true };
    generation.extend(options);
    publish(tokensEvent(1, "", 5), pauseEvent(1, true));
    generation.extend(options);
    expect(native.calls).toEqual([["extend", { id: 1, ...options }]]);
    expect(generation.tokens).toEqual([1, 2, 5]);
    for (const done of [1, 2]) publish({ kind: "extended", id: 1, done, total: 3 });
    publish(finishedEvent(1));
    const events = await readAll(generation);
    expect(events.filter(({ type }) => type === "extended")).toEqual([
      { type: "extended", done: 2, total: 3 },
    ]);
  });

  it("stays held when the addon refuses to resume", () => {
    const { native, publish, generate } = setUp();
    const generation = generate();
    publish(tokensEvent(1, "", 5), pauseEvent(1, true));
    native.refusal = { code: "invalid_argument" };
    const resume = () => generation.resume({ tokens: new Int32Array([9]), keepPending: false });
    expect(resume).toThrow(expect.objectContaining({ code: "invalid_value" }));
    expect(generation.tokens).toEqual([1, 2, 5]);
    expect(resume).not.toThrow();
  });

  it("throws its failure after what arrived before it, once", async () => {
    const { publish, generate } = setUp();
    const generation = generate();
    const iterator = generation[Symbol.asyncIterator]();
    publish(tokensEvent(1, "a", 5));
    publish({ kind: "failed", id: 1, code: "out_of_cells", message: "full", usage: fakeUsage });
    expect((await iterator.next()).done).toBe(false);
    await expect(iterator.next()).rejects.toMatchObject({ code: "out_of_cells", message: "full" });
    expect((await iterator.next()).done).toBe(true);
  });

  it("is cancelled by its signal, and by leaving the loop", async () => {
    const { native, publish, generate } = setUp();
    const controller = new AbortController();
    generate(controller.signal);
    controller.abort();
    expect(native.calls).toEqual([["cancel", 1]]);

    const generation = generate();
    publish(tokensEvent(2, "a", 5), tokensEvent(2, "b", 6));
    for await (const event of generation) {
      expect(event.type).toBe("text");
      break;
    }
    expect(native.calls.at(-1)).toEqual(["cancel", 2]);
    publish(tokensEvent(2, "c", 7), finishedEvent(2));
    expect(await readAll(generation)).toEqual([]);
  });

  it("is not submitted when its signal was aborted before", async () => {
    const { native, generate } = setUp();
    const events = await readAll(generate(AbortSignal.abort()));
    expect(native.submits).toEqual([]);
    expect(events).toMatchObject([
      { type: "finish", reason: "cancelled", usage: { promptTokens: 2, prefilledTokens: 0 } },
    ]);
  });
});

describe("requests of several owners", () => {
  it("enter the addon's queue in turn: many of one owner do not keep another's waiting", () => {
    const { native, engine, publish, generate } = setUp();
    const [many, one, other] = Array.from({ length: 3 }, (_, index) => `owner ${index}`);
    const saltOf = (owner: string): unknown => {
      const probe = setUp();
      probe.generate(undefined, owner);
      return probe.native.submits[0]!.salt;
    };
    const salts = [many!, one!, other!].map(saltOf);
    const entered = () => native.submits.map(({ salt }) => salts.indexOf(salt));
    for (let count = 0; count < 12; count++) generate(undefined, many);
    generate(undefined, one);
    generate(undefined, other);
    expect(entered()).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
    expect(engine.stats().waiting).toBe(4);
    publish(tokensEvent(2, "a", 5));
    publish(tokensEvent(2, "b", 6));
    expect(entered().slice(10)).toEqual([0]);
    publish(finishedEvent(1, "end"), { kind: "progress", id: 3, done: 1, total: 2 });
    expect(entered().slice(10)).toEqual([0, 0, 0]);
    publish(finishedEvent(9, "end"));
    expect(entered().slice(10)).toEqual([0, 0, 0]);
    // The addon takes them in ascending order only.
    expect(native.submits.map(({ id }) => id)).toEqual(native.submits.map((_, index) => index + 1));
  });

  it("are told apart by their clients, whoever owns them", () => {
    const { native, engine } = setUp();
    const ask = (client?: string) =>
      engine.generate({ prompt, sampling: greedy, owner: "anonymous", client });
    for (let count = 0; count < 12; count++) ask("192.0.2.1");
    expect(native.submits).toHaveLength(8);
    ask("192.0.2.2");
    ask();
    expect(native.submits).toHaveLength(10);
    // They share the cache all the same.
    expect(new Set(native.submits.map(({ salt }) => salt)).size).toBe(1);
  });

  it("may leave before they entered", async () => {
    const { native, engine, publish, generate } = setUp();
    for (let count = 0; count < 8; count++) generate(undefined, "many");
    const abort = new AbortController();
    const [aborted, cancelled] = [generate(abort.signal, "many"), generate(undefined, "many")];
    const last = generate(undefined, "many");
    const ended = Promise.all([readAll(aborted), readAll(cancelled)]);
    abort.abort();
    cancelled.pause();
    cancelled.cancel();
    for (const events of await ended)
      expect(events).toMatchObject([{ type: "finish", reason: "cancelled" }]);
    expect(native.calls).toEqual([]);
    expect(engine.stats().waiting).toBe(1);
    publish(finishedEvent(1, "end"));
    expect(native.submits).toHaveLength(9);
    expect(engine.stats().waiting).toBe(0);
    publish(tokensEvent(9, "a", 5), finishedEvent(9, "end"));
    expect(last.id).toBe(9);
    expect((await readAll(last)).at(-1)).toMatchObject({ reason: "end" });
  });

  it("are refused when too many of their owner wait", () => {
    const { native, generate } = setUp();
    for (let count = 0; count < 20; count++) generate(undefined, "many");
    expect(() => generate(undefined, "many")).toThrow(
      expect.objectContaining({ code: "queue_full" }),
    );
    expect(native.submits).toHaveLength(8);
    generate(undefined, "other");
    expect(native.submits).toHaveLength(9);
  });

  it("are not refused for what others sent, up to an equal share of the queue", () => {
    const { generate } = setUp();
    const refused = () => expect.objectContaining({ code: "queue_full" });
    for (let count = 0; count < 20; count++) generate(undefined, "many");
    for (let count = 0; count < 10; count++) generate(undefined, "other");
    for (const owner of ["many", "other"])
      expect(() => generate(undefined, owner)).toThrow(refused());
  });

  it("share the queue with those who ask now, not with those who did", () => {
    const { publish, generate } = setUp();
    generate(undefined, "earlier");
    publish(finishedEvent(1));
    for (let count = 0; count < 12; count++) generate(undefined, "many");
    for (let count = 0; count < 9; count++) generate(undefined, "other");
    expect(() => generate(undefined, "other")).not.toThrow();
    expect(() => generate(undefined, "many")).toThrow(
      expect.objectContaining({ code: "queue_full" }),
    );
  });

  it.each([
    [3, 12],
    [4, 9],
  ])("%i have an equal share each of 36 places: %i", (count, share) => {
    const { generate } = setUp(36);
    const ask = (owner: string, times: number): void => {
      for (let asked = 0; asked < times; asked++) generate(undefined, owner);
    };
    ask("many", 36);
    const others = Array.from({ length: count - 1 }, (_, index) => `owner ${index}`);
    for (const owner of others) ask(owner, 1);
    for (const owner of others) {
      ask(owner, share - 1);
      expect(() => ask(owner, 1)).toThrow(expect.objectContaining({ code: "queue_full" }));
    }
  });

  it("fail when the addon refuses them later, and the next one enters", async () => {
    const { native, engine, publish, generate } = setUp();
    const asked = Array.from({ length: 10 }, () => generate());
    native.refusal = { code: "invalid_argument" };
    publish(tokensEvent(1, "a", 5));
    await expect(readAll(asked[8]!)).rejects.toMatchObject({ code: "invalid_value" });
    expect(native.submits).toHaveLength(9);
    expect(engine.stats().waiting).toBe(0);
  });

  it("end when the engine closes", async () => {
    const { engine, generate } = setUp();
    const all = Array.from({ length: 10 }, () => readAll(generate()));
    const told = Promise.allSettled(all);
    await engine.close();
    for (const outcome of await told)
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "engine_closed" } });
  });
});

describe("an engine", () => {
  it("turns refusals of the addon into errors of the table", () => {
    const { native, generate } = setUp();
    for (const [native_code, code] of [
      ["queue_full", "queue_full"],
      ["closed", "engine_closed"],
      ["invalid_argument", "invalid_value"],
      ["something new", "internal_error"],
    ] as const) {
      native.refusal = { code: native_code };
      expect(() => generate()).toThrow(expect.objectContaining({ name: "FermataError", code }));
    }
  });

  it("tokenizes long texts one after the other, and short ones beside them", async () => {
    const { engine, native } = setUp();
    const atWork: number[] = [];
    const ends: (() => void)[] = [];
    native.tokenize = async (text) => {
      atWork.push(text.length);
      await new Promise<void>((resolve) => ends.push(resolve));
      return Int32Array.of(1);
    };
    const long = "x".repeat(2 ** 20);
    const all = [engine.tokenize(long), engine.tokenize(`${long}y`), engine.tokenize("short")];
    const settle = () => new Promise((resolve) => setImmediate(resolve));
    await settle();
    expect(atWork.toSorted((a, b) => a - b)).toEqual([5, long.length]);
    ends.forEach((end) => end());
    await settle();
    expect(atWork).toContain(long.length + 1);
    ends.forEach((end) => end());
    await Promise.all(all);
  });

  it("tells nobody of steps once it closes: it has no answer to what they would ask", async () => {
    const { engine, router } = setUp();
    const step = { prefillRows: 0, decodeRows: 1, microBatches: 1, copies: 0, milliseconds: 1 };
    let told = 0;
    engine.onStep(() => (told += 1));
    router.accept({ events: [], steps: [step] });
    const closed = engine.close();
    router.accept({ events: [], steps: [step] });
    await closed;
    expect(told).toBe(1);
  });

  it("ends what is left when it closes", async () => {
    const { engine, generate } = setUp();
    const reading = readAll(generate());
    await Promise.all([
      expect(reading).rejects.toMatchObject({ code: "engine_closed" }),
      engine.close(),
    ]);
    expect(() => generate()).toThrow(expect.objectContaining({ code: "engine_closed" }));
  });

  it("tells step listeners until they are removed", () => {
    const { engine, router } = setUp();
    const step = { prefillRows: 1, decodeRows: 2, microBatches: 1, copies: 0, milliseconds: 3 };
    const seen: unknown[] = [];
    const remove = engine.onStep((value) => seen.push(value));
    router.accept({ events: [], steps: [step, step] });
    remove();
    router.accept({ events: [], steps: [step] });
    expect(seen).toEqual([step, step]);
  });
});
