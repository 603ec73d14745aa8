/**
 * What other servers got wrong, by the numbers of the list that Fermata was planned with. The engine is a fake
 * whose rounds are written here; server, chat layer and tool loop are the real ones.
 */

import type { FastifyInstance } from "fastify";
import { describe, expect, test } from "vitest";

import { defineTool } from "../../src/tools/tool-builder.ts";
import { callText } from "../unit/chat/chat-fixtures.ts";
import type { FakeEngine } from "../unit/chat/fake-engine.ts";
import { engineWorld } from "./engine-world.ts";
import { post, sseEvents } from "./fake-services.ts";

interface Delta {
  role?: string;
  content?: string;
  reasoning_content?: string;
  tool_calls?: {
    index: number;
    id?: string;
    type?: string;
    function: { name?: string; arguments: string };
  }[];
}

interface Chunk {
  choices: { delta: Delta; finish_reason: string | null }[];
  usage?: object | null;
}

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: { type: "object", properties: { city: { type: "string" } } },
  },
};
const ping = { type: "function", function: { name: "ping", parameters: { type: "object" } } };
const ask = { messages: [{ role: "user", content: "Weather?" }], tools: [weather, ping] };

async function stream(app: FastifyInstance, body: object = ask): Promise<Chunk[]> {
  const response = await post(app, { ...body, stream: true });
  expect(response.statusCode).toBe(200);
  const events = sseEvents(response.body);
  expect(events.at(-1)).toBe("[DONE]");
  return events.slice(0, -1) as Chunk[];
}

const deltasOf = (chunks: Chunk[]): Delta[] =>
  chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
const callsOf = (chunks: Chunk[]) => deltasOf(chunks).flatMap((delta) => delta.tool_calls ?? []);
const textOf = (chunks: Chunk[], key: "content" | "reasoning_content" = "content"): string =>
  deltasOf(chunks)
    .map((delta) => delta[key] ?? "")
    .join("");
const reasonsOf = (chunks: Chunk[]) =>
  chunks.flatMap(({ choices }) => choices.map((choice) => choice.finish_reason));
const promptOf = (engine: FakeEngine): string => engine.spell(engine.last.request.prompt);

const history = (args: string, content: object = { content: "" }) => ({
  ...ask,
  messages: [
    ...ask.messages,
    {
      role: "assistant",
      ...content,
      tool_calls: [
        { id: "call_1", type: "function", function: { name: "get_weather", arguments: args } },
      ],
    },
    { role: "tool", tool_call_id: "call_1", content: "sun" },
  ],
});

describe("pitfall 1: finish_reason contradicts the calls", () => {
  test("a call and a natural end are tool_calls, streamed or not", async () => {
    expect(reasonsOf(await stream(engineWorld([callText("Rome")]).app)).at(-1)).toBe("tool_calls");
    const { choices } = (await post(engineWorld([callText("Rome")]).app, ask)).json();
    expect(choices[0].finish_reason).toBe("tool_calls");
    expect(choices[0].message.tool_calls).toHaveLength(1);
  });

  test("truncation wins, and the stream says so", async () => {
    const round = {
      text: `${callText("Rome")}${callText("Os").slice(0, 50)}`,
      end: "length",
    } as const;
    expect(reasonsOf(await stream(engineWorld([round]).app)).at(-1)).toBe("length");
    const { choices } = (await post(engineWorld([round]).app, ask)).json();
    expect(choices[0].finish_reason).toBe("length");
    const [, cut] = choices[0].message.tool_calls;
    expect(choices[0].message.tool_calls).toHaveLength(2);
    expect(() => JSON.parse(cut.function.arguments) as unknown).toThrow();
  });
});

test("pitfall 2: finish_reason comes once, alone, in a last chunk with an empty delta", async () => {
  for (const text of ["Hello.", callText("Rome")]) {
    const chunks = await stream(engineWorld([text]).app);
    expect(chunks.at(-1)?.choices[0]?.delta).toEqual({});
    expect(reasonsOf(chunks).filter((reason) => reason !== null)).toHaveLength(1);
    expect(reasonsOf(chunks).at(-1)).not.toBeNull();
  }
});

test("pitfall 3: the last brace is not lost, however tokens are batched", async () => {
  for (let length = 0; length < 7; length++) {
    const city = "x".repeat(length);
    for (const tail of ["", "\n", " "]) {
      const calls = callsOf(await stream(engineWorld([callText(city) + tail]).app));
      expect(calls.map((call) => call.function.arguments).join("")).toBe(`{"city":"${city}"}`);
    }
  }
});

test("pitfall 4: a call without arguments streams {}", async () => {
  for (const text of [
    '{"name":"ping"}',
    '{"name":"ping","arguments":{}}',
    '{"name":"ping","arguments":null}',
  ]) {
    const calls = callsOf(await stream(engineWorld([`<tool_call>${text}</tool_call>`]).app));
    expect(calls.map((call) => call.function.arguments).join("")).toBe("{}");
    expect(calls.length).toBeGreaterThan(1);
  }
});

test("pitfall 5: calls have an index of their own, and one id each", async () => {
  const calls = callsOf(await stream(engineWorld([callText("Rome") + callText("Oslo")]).app));
  expect([...new Set(calls.map((call) => call.index))]).toEqual([0, 1]);
  const ids = calls.flatMap((call) => call.id ?? []);
  expect(ids).toHaveLength(2);
  expect(new Set(ids).size).toBe(2);
});

test("pitfall 6: the first delta of a call has id, type, name and empty arguments", async () => {
  const [first] = callsOf(await stream(engineWorld([callText("Rome")]).app));
  expect(first).toEqual({
    index: 0,
    id: expect.stringMatching(/^call_/u),
    type: "function",
    function: { name: "get_weather", arguments: "" },
  });
});

test("pitfall 7: later deltas have arguments and nothing else", async () => {
  const [, ...later] = callsOf(await stream(engineWorld([callText("Rome")]).app));
  expect(later.length).toBeGreaterThan(0);
  for (const call of later) {
    expect(Object.keys(call).sort()).toEqual(["function", "index"]);
    expect(Object.keys(call.function)).toEqual(["arguments"]);
  }
});

test("pitfall 8: nothing is retracted: the stream joins to what the whole answer says", async () => {
  const texts = [
    "a <tool_cal",
    "<tool_call>{nope}</tool_call> so",
    'x <tool_call>{"name":"get_weather","arguments":{"city":"</tool_call>"}}</tool_call>',
    '```json\n{"a":1}\n```\nend',
    '{"name":"other","arguments":{}}',
    `<tool_call>{"name":"get_weather","arguments":{bad}}</tool_call>`,
  ];
  for (const text of texts) {
    const chunks = await stream(engineWorld([text]).app);
    const [{ message }] = (await post(engineWorld([text]).app, ask)).json().choices;
    expect(textOf(chunks)).toBe(message.content ?? "");
    const args = callsOf(chunks).map((call) => call.function.arguments);
    const whole = (message.tool_calls ?? []) as { function: { arguments: string } }[];
    expect(args.join("")).toBe(whole.map((call) => call.function.arguments).join(""));
  }
});

test("pitfall 9: no tag leaks, and a call within reasoning is none", async () => {
  const text = `<think>\nIs it ${callText("Rome")}?\n</think>\n\nYes.\n${callText("Oslo")}`;
  const chunks = await stream(engineWorld([text]).app);
  expect(textOf(chunks, "reasoning_content")).toBe(`Is it ${callText("Rome")}?`);
  expect(textOf(chunks)).toBe("Yes.");
  expect(callsOf(chunks).flatMap((call) => call.id ?? [])).toHaveLength(1);

  const unclosed = await stream(engineWorld(["<think>Never ends"]).app);
  expect([textOf(unclosed), textOf(unclosed, "reasoning_content")]).toEqual(["", "Never ends"]);
});

test("pitfall 10: reasoning is told although tools are offered", async () => {
  const chunks = await stream(engineWorld([`<think>\nHm.\n</think>\n\n${callText("Rome")}`]).app);
  expect(textOf(chunks, "reasoning_content")).toBe("Hm.");
  expect(reasonsOf(chunks).at(-1)).toBe("tool_calls");
});

test("pitfall 11: malformed arguments in the history are no 500", async () => {
  for (const args of ['{"city":', "", "[1]", "null", '"{\\"city\\":\\"Rome\\"}"', "\u0000"]) {
    const { app, engine } = engineWorld();
    expect((await post(app, history(args))).statusCode).toBe(200);
    expect(promptOf(engine)).toContain("sun");
  }
});

test("pitfall 12: the template gets arguments as an object, and text that is none as text", async () => {
  const parsed = engineWorld();
  await post(parsed.app, history('{"city":"Rome"}'));
  expect(promptOf(parsed.engine)).toContain('"arguments": {"city": "Rome"}}');
  const twice = engineWorld();
  await post(twice.app, history('"{\\"city\\":\\"Rome\\"}"'));
  expect(promptOf(twice.engine)).toContain('"arguments": {"city": "Rome"}}');
  const broken = engineWorld();
  await post(broken.app, history('{"city":'));
  expect(promptOf(broken.engine)).toContain('"arguments": "{\\"city\\":"}');
});

test("pitfall 13: content null, missing and empty beside calls are the same", async () => {
  const prompts = await Promise.all(
    [{ content: null }, {}, { content: "" }].map(async (content) => {
      const { app, engine } = engineWorld();
      expect((await post(app, history('{"city":"Rome"}', content))).statusCode).toBe(200);
      return promptOf(engine);
    }),
  );
  expect(new Set(prompts).size).toBe(1);
  expect(prompts[0]).toContain("sun");
});

test("pitfall 14: many optional parameters with parallel calls, and strict null, are answered", async () => {
  const properties = Object.fromEntries(
    Array.from({ length: 48 }, (_, index) => [`p${index}`, { type: "string" }]),
  );
  const big = { name: "get_weather", strict: null, parameters: { type: "object", properties } };
  const { app } = engineWorld([callText("Rome")]);
  const body = { ...ask, tools: [{ type: "function", function: big }], parallel_tool_calls: true };
  expect((await post(app, body)).json().choices[0].finish_reason).toBe("tool_calls");
});

test("pitfall 15: a tool's result may be an array of text parts", async () => {
  const { app, engine } = engineWorld();
  const body = history('{"city":"Rome"}');
  const parts = [
    { type: "text", text: "sun" },
    { type: "text", text: "shine" },
  ];
  const messages = body.messages.map((message) =>
    message.role === "tool" ? { ...message, content: parts } : message,
  );
  expect((await post(app, { ...body, messages })).statusCode).toBe(200);
  expect(promptOf(engine)).toMatch(/<tool_response>⟫?\n?sun\s?shine/u);
});

test("pitfall 16: a call that is made again and again is not run again and again", async () => {
  let runs = 0;
  const tool = defineTool("get_weather", "").run(() => `sun ${(runs += 1)}`);
  const again = callText("Rome");
  const spaced = again.replace('{"city":"Rome"}', '{ "city": "Rome" }');
  const { app, engine } = engineWorld([again, again, spaced, again, "I give up."], [tool]);
  const { choices } = (await post(app, { messages: ask.messages })).json();
  expect(choices[0].message.content).toBe("I give up.");
  expect(runs).toBe(3);
  expect(engine.spell(engine.last.resumes[3]?.tokens ?? [])).toContain(
    "Error: not run: the same call was made 4 times in a row",
  );
});

test("pitfall 17: usage comes when it is asked for, in a chunk of its own, and is null before", async () => {
  const chunks = await stream(engineWorld(["Hello."]).app, {
    ...ask,
    stream_options: { include_usage: true },
  });
  const last = chunks.at(-1);
  expect(last?.choices).toEqual([]);
  expect(last?.usage).toMatchObject({ completion_tokens: 7 });
  for (const chunk of chunks.slice(0, -1)) expect(chunk.usage).toBeNull();
});
