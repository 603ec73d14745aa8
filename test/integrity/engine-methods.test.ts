// Every method of Engine and Generation in every state, with what it gives and where it leads.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../src/engine/engine.ts";
import type { Generation, Grammar } from "../../src/engine/types.ts";
import { FermataError } from "../../src/errors.ts";
import {
  collect,
  endlessRequest,
  holdAtEnd,
  loadTestEngine,
  longRequest,
  readUntil,
  scripted,
} from "../support/engine.ts";

interface Subject {
  engine: Engine;
  generation: Generation;
}

const text = "What is the weather in Paris?";
const contextSize = 6144;
const liveStates = ["prefill", "decode", "held", "finished", "cancelled"] as const;
type State = (typeof liveStates)[number] | "closed";

async function enter(state: State, engine: Engine): Promise<Subject> {
  const prompt = await engine.tokenize(text);
  switch (state) {
    case "prefill": {
      const long = new Int32Array(1500).map((_, index) => prompt[index % prompt.length] ?? 0);
      return { engine, generation: engine.generate({ ...endlessRequest(prompt), prompt: long }) };
    }
    case "decode": {
      const generation = engine.generate(endlessRequest(prompt));
      await readUntil(generation, "text");
      return { engine, generation };
    }
    case "held": {
      const generation = engine.generate({
        prompt,
        sampling: scripted(prompt.subarray(0, 2)),
        pause: holdAtEnd,
      });
      await readUntil(generation, "hold");
      return { engine, generation };
    }
    case "finished": {
      const generation = engine.generate(longRequest(prompt, 2));
      await collect(generation);
      return { engine, generation };
    }
    case "cancelled": {
      const generation = engine.generate(endlessRequest(prompt));
      generation.cancel();
      await collect(generation);
      return { engine, generation };
    }
    case "closed": {
      const generation = engine.generate(endlessRequest(prompt));
      await readUntil(generation, "text");
      await engine.close();
      return { engine, generation };
    }
  }
}

/** What a call gives: its value, or the code of its error. */
async function outcome(call: () => unknown): Promise<unknown> {
  try {
    return await call();
  } catch (error) {
    return error instanceof FermataError ? error.code : error;
  }
}

/** How the generation ends when it is cancelled now, unless it ends by itself. */
async function ending(generation: Generation): Promise<string> {
  try {
    for await (const event of generation) {
      if (event.type === "finish") return event.reason;
      if (event.type === "hold") return `held: ${event.reason}`;
    }
    return "already over";
  } catch (error) {
    return (error as FermataError).code;
  }
}

const engineCalls: [name: string, call: (engine: Engine) => unknown, live: unknown][] = [
  ["tokenize", async (engine) => (await engine.tokenize(text)).length > 0, true],
  ["detokenize", async (engine) => engine.detokenize(await engine.tokenize(text)), text],
  [
    "generate",
    async (engine) => {
      const prompt = await engine.tokenize(text);
      return (await collect(engine.generate(longRequest(prompt, 3)))).finish.reason;
    },
    "end",
  ],
  [
    "compileGrammar",
    async (engine) => {
      const grammar = await engine.compileGrammar({ kind: "gbnf", text: 'root ::= "yes" | "no"' });
      const request = longRequest(await engine.tokenize(text), 3);
      return (await collect(engine.generate({ ...request, grammar, maxTokens: 9 }))).finish.reason;
    },
    "end",
  ],
  ["stats", (engine) => engine.stats().slots, 4],
  ["checkIntegrity", (engine) => engine.checkIntegrity(), ""],
];

describe.each(liveStates)("while a generation is %s", (state) => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await loadTestEngine({ contextSize });
  });
  afterAll(() => engine.close());

  async function settle({ generation }: Subject) {
    generation.cancel();
    await ending(generation);
    await expect.poll(() => engine.stats().running + engine.stats().held).toBe(0);
    expect(await engine.checkIntegrity()).toBe("");
  }

  it.each(engineCalls)("engine.%s", async (_, call, expected) => {
    const subject = await enter(state, engine);
    expect(await outcome(() => call(engine))).toEqual(expected);
    await settle(subject);
  });

  it("engine.onStep", async () => {
    const subject = await enter(state, engine);
    let steps = 0;
    const remove = engine.onStep(() => steps++);
    await collect(engine.generate(longRequest(await engine.tokenize(text), 3)));
    expect(steps).toBeGreaterThanOrEqual(3);
    remove();
    await settle(subject);
  });

  const over = "already over";
  it.each([
    [
      "pause",
      { prefill: "held: requested", decode: "held: requested", finished: over, cancelled: over },
    ],
    ["release", { held: "released", finished: over, cancelled: over }],
    [
      "cancel",
      {
        prefill: "cancelled",
        decode: "cancelled",
        held: "cancelled",
        finished: over,
        cancelled: over,
      },
    ],
  ] as const)("generation.%s", async (method, endings: { [state: string]: string }) => {
    const subject = await enter(state, engine);
    expect(subject.generation[method]()).toBe(undefined);
    const expected = endings[state];
    if (expected !== undefined) expect(await ending(subject.generation)).toBe(expected);
    await settle(subject);
  });

  it("generation.extend", async () => {
    const subject = await enter(state, engine);
    const before = engine.stats().extendedTokens;
    const tokens = await engine.tokenize(" and then?");
    const extend = (it: Int32Array) => subject.generation.extend({ tokens: it, keepPending: true });
    const isHeld = state === "held";
    const refused = isHeld ? "invalid_value" : undefined;
    for (const wrong of [new Int32Array(), Int32Array.of(-1), new Int32Array(7000)])
      expect(await outcome(() => extend(wrong))).toBe(refused);
    expect(await outcome(() => extend(tokens))).toBe(undefined);
    if (isHeld) {
      const expected = before + tokens.length + 1;
      await expect.poll(() => engine.stats().extendedTokens).toBe(expected);
    }
    await settle(subject);
    if (!isHeld) expect(engine.stats().extendedTokens).toBe(before);
  });

  it("generation.resume", async () => {
    const subject = await enter(state, engine);
    const tokens = await engine.tokenize(" and then?");
    const resume = () => subject.generation.resume({ tokens, keepPending: true, maxTokens: 4 });
    if (state === "held") {
      expect(await outcome(resume)).toBe(undefined);
      expect(await outcome(resume)).toBe("not_held");
      // The script is over, so it ends at once, and holds again.
      expect(await ending(subject.generation)).toBe("held: end_token");
    } else {
      expect(await outcome(resume)).toBe("not_held");
    }
    await settle(subject);
  });

  it("engine.close", async () => {
    const other = await loadTestEngine({ contextSize });
    const { generation } = await enter(state, other);
    const closings = await Promise.all([other.close(), other.close()]);
    expect(closings).toEqual([undefined, undefined]);
    const isOver = state === "finished" || state === "cancelled";
    expect(await ending(generation)).toBe(isOver ? over : "engine_closed");
    expect(engine.stats().slots).toBe(4);
  });
});

describe("after close", () => {
  it.each(engineCalls)("engine.%s", async (_, call) => {
    const { engine } = await enter("closed", await loadTestEngine({ contextSize }));
    expect(await outcome(() => call(engine))).toBe("engine_closed");
  });

  it("generation methods and further closes do nothing", async () => {
    const { engine, generation } = await enter("closed", await loadTestEngine({ contextSize }));
    expect(await ending(generation)).toBe("engine_closed");
    expect(await ending(generation)).toBe("already over");
    for (const method of ["pause", "release", "cancel"] as const) generation[method]();
    const tokens = new Int32Array([1]);
    generation.extend({ tokens, keepPending: true });
    expect(await outcome(() => generation.resume({ tokens, keepPending: true }))).toBe("not_held");
    expect(await engine.close()).toBe(undefined);
  });

  it("calls that were under way settle", async () => {
    const engine = await loadTestEngine({ contextSize });
    const tokenizing = outcome(async () => (await engine.tokenize(text)).length > 0);
    const checking = outcome(() => engine.checkIntegrity());
    const compiling = outcome(() => engine.compileGrammar({ kind: "gbnf", text: 'root ::= "a"' }));
    await engine.close();
    expect(await tokenizing).toBe(true);
    expect(await compiling).toBe("engine_closed");
    expect(["", "engine_closed"]).toContain(await checking);
  });
});

describe("a grammar", () => {
  const source = { kind: "gbnf", text: 'root ::= "yes" | "no" | [0-9]+' } as const;

  it("works on when only generations hold it", async () => {
    const engine = await loadTestEngine({ contextSize });
    const prompt = await engine.tokenize(text);
    const generations = await Promise.all(
      [1, 2, 3].map(async () =>
        engine.generate({
          ...longRequest(prompt, 20),
          grammar: await engine.compileGrammar(source),
          maxTokens: 9,
        }),
      ),
    );
    globalThis.gc?.();
    for (const generation of generations) {
      expect((await collect(generation)).text).toMatch(/^(yes|no|[0-9]+)$/);
    }
    expect(await engine.checkIntegrity()).toBe("");
    await engine.close();
  });

  it("of another engine, or closed, is refused", async () => {
    const [one, two] = await Promise.all([
      loadTestEngine({ contextSize }),
      loadTestEngine({ contextSize }),
    ]);
    const grammar = await one.compileGrammar(source);
    const prompt = await two.tokenize(text);
    const generate = (engine: Engine, value: unknown) =>
      outcome(() => engine.generate({ ...longRequest(prompt, 2), grammar: value as Grammar }));
    expect(await generate(two, grammar)).toBe("invalid_value");
    for (const value of [{}, 1, "root", { ...grammar }]) {
      expect(await generate(one, value)).toBe("invalid_value");
    }
    expect(grammar.check(await one.tokenize("yes"))).toMatchObject({ complete: true });
    await one.close();
    expect(() => grammar.check(prompt)).toThrow("closed");
    await two.close();
  });
});

describe("while loading", () => {
  it("two engines load side by side and do not share state", async () => {
    const [one, two] = await Promise.all([
      loadTestEngine({ contextSize }),
      loadTestEngine({ parallel: 1 }),
    ]);
    const prompt = await one.tokenize(text);
    const results = await Promise.all(
      [one, two].map((engine) => collect(engine.generate(longRequest(prompt, 5)))),
    );
    expect(results.map(({ finish }) => finish.usage.generatedTokens)).toEqual([6, 6]);
    await one.close();
    expect(two.stats().generatedTokens).toBe(6);
    await two.close();
  });
});
