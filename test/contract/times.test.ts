/** `timings`, `timings_per_token` and `return_progress`, as llama-server has them. */

import { describe, expect, test, vi } from "vitest";
import {
  callEvents,
  createWorld,
  fakeTool,
  finish,
  post,
  provider,
  sseEvents,
} from "./fake-services.ts";
import { type Event, eventsOf } from "./responses-world.ts";

const messages = [{ role: "user", content: "Hi" }];
interface Told {
  choices?: { index: number; finish_reason: string | null }[];
  usage?: object | null;
  timings?: Record<string, number>;
  prompt_progress?: Record<string, number>;
}

function chatWorld() {
  const world = createWorld();
  world.chat.script = [
    { drawn: 0 },
    { type: "progress", done: 3, total: 8, cached: 12 },
    { type: "progress", done: 8, total: 8, cached: 12 },
    { drawn: 1 },
    { type: "reasoning", text: "Hm." },
    { drawn: 2 },
    { type: "content", text: "Hello." },
    { drawn: 7 },
    finish("stop"),
  ];
  return world;
}

/** Numbers of the script's usage: 20 of the prompt and 5 of results, 12 of them cached, 7 written. */
const whole = { cache_n: 12, prompt_n: 13, predicted_n: 7 };

const names = ["prompt", "predicted"].flatMap((what) =>
  ["n", "ms", "per_token_ms", "per_second"].map((unit) => `${what}_${unit}`),
);

test("a chat completion has its timings", async () => {
  const { timings } = (await post(chatWorld().app, { messages })).json() as Told;
  expect(timings).toMatchObject(whole);
  expect(Object.keys(timings!).toSorted()).toEqual(["cache_n", ...names].toSorted());
  const { prompt_ms, prompt_per_token_ms, prompt_n } = timings as Record<string, number>;
  expect(prompt_ms).toBeGreaterThan(0);
  expect(prompt_per_token_ms).toBeCloseTo(prompt_ms! / prompt_n!, 9);
});

describe("streams", () => {
  const stream = async (options: object) => {
    const { body } = await post(chatWorld().app, { messages, stream: true, ...options });
    return sseEvents(body).filter((event) => event !== "[DONE]") as Told[];
  };
  const timed = (events: Told[]) => events.map(({ timings }) => timings !== undefined);

  test("the last chunk has them", async () => {
    const events = await stream({});
    expect(timed(events)).toEqual([false, false, false, true]);
    expect(events.at(-1)!.timings).toMatchObject(whole);
    expect(events.at(-1)!.choices![0]!.finish_reason).toBe("stop");
  });

  test("the chunk with the usage has them, if there is one", async () => {
    const events = await stream({ stream_options: { include_usage: true } });
    expect(timed(events)).toEqual([false, false, false, false, true]);
    expect(events.at(-1)).toMatchObject({ choices: [], usage: {}, timings: whole });
  });

  test("timings_per_token: each chunk has them so far", async () => {
    const events = await stream({ timings_per_token: true });
    expect(events.map(({ timings }) => timings?.["predicted_n"])).toEqual([undefined, 1, 2, 7]);
    expect(events[1]!.timings).toMatchObject({ cache_n: 12, prompt_n: 8 });
  });

  test("return_progress: how much of the prompt is read", async () => {
    const events = await stream({ return_progress: true });
    const progress = events.map((event) => event.prompt_progress).filter((told) => told);
    const time_ms = expect.any(Number);
    expect(progress).toEqual([
      { total: 20, cache: 12, processed: 12, time_ms: 0 },
      { total: 20, cache: 12, processed: 15, time_ms },
      { total: 20, cache: 12, processed: 20, time_ms },
    ]);
    expect((await stream({})).some((event) => "prompt_progress" in event)).toBe(false);
  });

  test("each choice has its own", async () => {
    const events = await stream({ n: 2 });
    const last = events.filter(({ timings }) => timings !== undefined);
    expect(last.map(({ choices }) => choices![0]!.index).toSorted()).toEqual([0, 1]);
  });
});

describe("responses", () => {
  const respond = async (options: object): Promise<string> => {
    const payload = { input: "Hi", ...options };
    return (await chatWorld().app.inject({ method: "POST", url: "/v1/responses", payload })).body;
  };
  const stream = async (options: object) =>
    eventsOf(await respond({ stream: true, ...options })) as (Event & Told)[];

  test("the last event has them", async () => {
    const events = await stream({});
    const timed = events.filter((event) => "timings" in event);
    expect(timed.map(({ type }) => type)).toEqual(["response.completed"]);
    expect(timed[0]!.timings).toMatchObject(whole);
    expect(events.some((event) => "prompt_progress" in event)).toBe(false);
  });

  test("timings_per_token: each delta has them so far", async () => {
    const events = await stream({ timings_per_token: true });
    const deltas = events.filter(({ type }) => type.endsWith("_text.delta"));
    expect(deltas.map(({ timings }) => timings!["predicted_n"])).toEqual([1, 2]);
  });

  test("return_progress: how much of the prompt is read, before the first item", async () => {
    const events = await stream({ return_progress: true });
    const progress = events.flatMap(({ type, prompt_progress: told }) =>
      told === undefined ? [] : [[type, told["processed"], told["total"]]],
    );
    expect(progress).toEqual([12, 15, 20].map((done) => ["response.in_progress", done, 20]));
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index));
  });

  test("an answer that is not streamed is OpenAI's alone", async () => {
    expect(JSON.parse(await respond({ timings_per_token: true }))).not.toHaveProperty("timings");
  });
});

test("what is waited for tools is not counted", async () => {
  const call = { id: "c1", name: "wait", arguments: "{}" };
  const tool = fakeTool("wait", { content: "done", isError: false });
  const hour = 3_600_000;
  const slow = async () => {
    const now = performance.now() + hour;
    vi.spyOn(performance, "now").mockImplementation(() => now);
    return { content: "done", isError: false };
  };
  const world = createWorld({ tools: provider({ ...tool, call: slow }) });
  world.chat.script = [
    { drawn: 0 },
    { drawn: 1 },
    ...callEvents(call),
    { type: "hold", calls: [call], usage: { ...noUsage, generatedTokens: 1 } },
    { drawn: 1 },
    { drawn: 2 },
    { type: "content", text: "Hello." },
    finish("stop"),
  ];
  const { timings } = (await post(world.app, { messages })).json() as Told;
  vi.restoreAllMocks();
  expect(timings!["prompt_ms"]! + timings!["predicted_ms"]!).toBeLessThan(hour);
});

const noUsage = {
  promptTokens: 20,
  cachedTokens: 0,
  resumedTokens: 0,
  prefilledTokens: 20,
  recomputedTokens: 0,
  generatedTokens: 0,
};

test("an agent's endpoint tells no times", async () => {
  const { app } = createWorld();
  expect((await post(app, { messages })).json()).not.toHaveProperty("timings");
});

describe.each(["/v1/completions", "/completion"])("%s", (url) => {
  const complete = async (options: object) => {
    const payload = { prompt: "abc", ...options };
    return (await createWorld().app.inject({ method: "POST", url, payload })).body;
  };
  const stream = async (options: object) =>
    sseEvents(await complete({ stream: true, ...options })).filter(
      (event) => event !== "[DONE]",
    ) as Told[];

  test("the answer", async () => {
    const { timings } = JSON.parse(await complete({})) as Told;
    expect(timings).toMatchObject({ cache_n: 12, predicted_n: 3 });
  });

  test("the last event", async () => {
    const events = await stream({});
    expect(events.map(({ timings }) => timings?.["predicted_n"])).toEqual([
      undefined,
      undefined,
      undefined,
      3,
    ]);
  });

  test("timings_per_token", async () => {
    const events = await stream({ timings_per_token: true });
    expect(events.map(({ timings }) => timings?.["predicted_n"])).toEqual([1, 2, 3, 3]);
    expect(events[0]!.timings).toMatchObject({ cache_n: 1, prompt_n: 2 });
  });

  test("return_progress", async () => {
    const [start, first, ...others] = await stream({ return_progress: true });
    expect(start!.prompt_progress).toMatchObject({ total: 3, cache: 1, processed: 1 });
    expect(first!.prompt_progress).toMatchObject({ total: 3, cache: 1, processed: 3 });
    expect(others.some((event) => "prompt_progress" in event)).toBe(false);
    const [plain] = await stream({});
    expect(plain).not.toHaveProperty("prompt_progress");
  });
});

test("the rate of writing leaves out a round's first token, which comes with the reading", async () => {
  const { timings } = (await post(chatWorld().app, { messages })).json() as Told;
  const { predicted_ms, predicted_per_token_ms } = timings as Record<string, number>;
  expect(predicted_ms).toBeGreaterThan(0);
  expect(predicted_per_token_ms).toBeCloseTo(predicted_ms! / 6, 9);
  const payload = { prompt: "a", n_predict: 1 };
  const one = await createWorld().app.inject({ method: "POST", url: "/completion", payload });
  expect(one.json().timings).toMatchObject({ predicted_n: 1, predicted_per_second: 0 });
});

test("the first progress tells that nothing was read", async () => {
  const payload = { prompt: "abc", stream: true, return_progress: true, timings_per_token: true };
  const { app } = createWorld();
  const { body } = await app.inject({ method: "POST", url: "/completion", payload });
  const [start, first] = sseEvents(body) as Told[];
  expect(start!.timings).toMatchObject({ cache_n: 1, prompt_n: 0, prompt_ms: 0, predicted_n: 0 });
  expect(first!.timings).toMatchObject({ cache_n: 1, prompt_n: 2 });
  expect(first!.timings!["prompt_ms"]).toBeGreaterThan(0);
});
