// Another server as a chat, over a real socket. The server is a fake that contradicts itself, breaks off and hangs.
import { afterEach, describe, expect, test } from "vitest";
import { RemoteChat } from "../../../src/agents/remote/remote-chat.ts";
import { readSampling } from "../../../src/server/body/generation.ts";
import { defineTool } from "../../../src/tools/tool-builder.ts";
import type { ChatEvent } from "../../../src/chat/types.ts";
import {
  chunk,
  type FakeAnswer,
  silent,
  status,
  streamed,
  streamedWithoutDone,
  usageChunk,
  whole,
} from "../../support/fake-endpoint.ts";
import { greedy } from "../../support/sampling.ts";
import {
  add,
  answer,
  args,
  ask,
  callDelta,
  closeFake,
  fake,
  serve,
  said,
  unsampled,
} from "./remote-chat-world.ts";

afterEach(closeFake);

test("after a limit the endpoint is told to call no tool, and answers", async () => {
  const round = streamed(callDelta(), chunk({}, "tool_calls"));
  const { text, bodies } = await ask([round, round, answer], { loop: { maxRounds: 1 } });
  expect(text).toMatch(/^It is 5\./);
  const choices = bodies.map((body) => (body as { tool_choice?: string }).tool_choice);
  expect(choices).toEqual([undefined, undefined, "none"]);
  expect(bodies[2]).toMatchObject({ tools: unsampled.tools });
});

test("a tool round: what is sent, what comes, what it counts", async () => {
  const deltas = [
    chunk({ role: "assistant", content: null }),
    chunk({ reasoning_content: "Adding." }),
    chunk({
      tool_calls: [
        { index: 0, id: "x", type: "function", function: { name: "add", arguments: "" } },
      ],
    }),
    ...['{"a":', ' 2, "b": 3}'].map((part) =>
      chunk({ tool_calls: [{ index: 0, function: { arguments: part } }] }),
    ),
    chunk({}, "tool_calls"),
    usageChunk,
  ];
  const { events, text, results, finish, bodies } = await ask([streamed(...deltas), answer]);
  expect([text, results]).toEqual(["It is 5.", ["5"]]);
  expect(finish).toMatchObject({
    reason: "stop",
    usage: {
      promptTokens: 60,
      cachedTokens: 20,
      prefilledTokens: 40,
      generatedTokens: 18,
      reasoningTokens: 8,
    },
  });
  const types = events.map(({ type }) => type);
  expect(types.slice(0, 7)).toEqual([
    "reasoning",
    "call-start",
    "call-arguments",
    "call-arguments",
    "call-end",
    "hold",
    "tool-start",
  ]);
  expect(fake.requests[0]?.url).toBe("/v1/chat/completions");
  expect(fake.requests[0]?.headers.authorization).toBe("Bearer key");
  expect(bodies[0]).toEqual({ ...unsampled, temperature: 0 });
  const sent = bodies[1]?.["messages"] as {
    tool_calls?: { id: string }[];
    tool_call_id?: string;
  }[];
  const id = sent[1]?.tool_calls?.[0]?.id;
  // Ids of other servers need not be unique, so the calls get Fermata's.
  expect(id).toMatch(/^call_/);
  expect(sent.slice(1)).toEqual([
    {
      role: "assistant",
      content: null,
      reasoning_content: "Adding.",
      tool_calls: [{ id, type: "function", function: { name: "add", arguments: args } }],
    },
    { role: "tool", tool_call_id: id, content: "5" },
  ]);
});

test("system messages that lead are sent as one: many servers take no second", async () => {
  const user = { role: "user", content: "2 + 3?" } as const;
  const systems = ["A", "B"].map((content) => ({ role: "system", content }) as const);
  const { bodies } = await ask([answer], { request: { messages: [...systems, user] } });
  expect(bodies[0]?.["messages"]).toEqual([{ role: "system", content: "A\n\nB" }, user]);
});

test("reasoning goes back under the field in which it came, in the rounds of its request", async () => {
  const round = (...fields: object[]): FakeAnswer =>
    streamed(...fields.map((it) => chunk(it)), callDelta(), chunk({}, "tool_calls"));
  const { bodies, events } = await ask([
    round({ reasoning: "First, " }, { reasoning: "this." }),
    round({ reasoning_content: "Then that.", reasoning: "Then that." }),
    round(),
    answer,
  ]);
  const thoughts = (bodies[3]!["messages"] as Record<string, unknown>[])
    .filter(({ role }) => role === "assistant")
    .map((it) => [it["reasoning"], it["reasoning_content"]]);
  expect(thoughts).toEqual([
    ["First, this.", undefined],
    [undefined, "Then that."],
    [undefined, undefined],
  ]);
  const told = events.flatMap((event) => (event.type === "reasoning" ? event.text : []));
  expect(told.join("")).toBe("First, this.Then that.");
});

describe("calls decide, finish reasons advise", () => {
  const runs: [name: string, first: FakeAnswer, warning: string | null][] = [
    ["stop, with calls", streamed(callDelta(), chunk({}, "stop")), "does not announce them"],
    ["tool_call, in the singular", streamed(callDelta(), chunk({}, "tool_call")), null],
    ["function_call, the old one", streamed(callDelta(), chunk({}, "function_call")), null],
    ["error, with whole calls", streamed(callDelta(), chunk({}, "error")), "does not announce"],
    ["length, with whole calls", streamed(callDelta(), chunk({}, "length")), "token limit"],
    ["no reason at all", streamed(callDelta()), null],
    ["a reason, and no last word", streamedWithoutDone(callDelta(), chunk({}, "tool_calls")), null],
    ["no index", streamed(callDelta({ index: undefined }), chunk({}, "tool_calls")), null],
    ["no id", streamed(callDelta({ id: undefined }), chunk({}, "tool_calls")), null],
    [
      "the arguments once more at the end",
      streamed(callDelta(), callDelta(), chunk({}, "tool_calls")),
      null,
    ],
    [
      "arguments as an object",
      streamed(
        callDelta({ function: { name: "add", arguments: { a: 2, b: 3 } } }),
        chunk({}, "tool_calls"),
      ),
      null,
    ],
    [
      "tool_call in place of tool_calls",
      streamed(
        chunk({ tool_call: { id: "x", function: { name: "add", arguments: args } } }, "tool_call"),
      ),
      null,
    ],
    [
      "function_call in place of tool_calls",
      streamed(chunk({ function_call: { name: "add", arguments: args } }, "function_call")),
      null,
    ],
    [
      "a whole answer instead of a stream",
      whole(
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "x", type: "function", function: { name: "add", arguments: args } }],
        },
        "tool_calls",
      ),
      null,
    ],
  ];
  test.each(runs)("run: %s", async (_name, first, warning) => {
    const { text, results, error } = await ask([first, answer]);
    expect([text, results, error]).toEqual(["It is 5.", ["5"], null]);
    if (warning === null) expect(said).toEqual([]);
    else expect(said.join()).toContain(warning);
  });

  test("two calls of a round, told apart by index, are both run", async () => {
    const both = chunk({
      tool_calls: [0, 1].map((index) => ({
        index,
        id: "same",
        function: { name: "add", arguments: `{"a": ${index}, "b": 1}` },
      })),
    });
    const { results } = await ask([streamed(both, chunk({}, "tool_calls")), answer]);
    expect(results).toEqual(["1", "2"]);
  });

  test("not run: tool_calls without calls", async () => {
    const { text, finish } = await ask([streamed(chunk({ content: "Hi." }, "tool_calls"))]);
    expect([text, finish?.reason, fake.requests.length]).toEqual(["Hi.", "stop", 1]);
    expect(said.join()).toContain("announces tool calls and there are none");
  });

  test("not run: a call that the token limit cut", async () => {
    const cut = callDelta({ function: { name: "add", arguments: '{"a": 2' } });
    const { results, finish } = await ask([streamed(cut, chunk({}, "length"))]);
    expect([results, finish?.reason]).toEqual([[], "length"]);
    expect(said.join()).toContain("cut inside of tool calls");
  });

  test.each(["", " "])("run: arguments that are %j, which are none", async (blank) => {
    const now = defineTool("now", "Tell the time").run((given) => JSON.stringify(given));
    const call = callDelta({ function: { name: "now", arguments: blank } });
    const { results, bodies } = await ask([streamed(call, chunk({}, "tool_calls")), answer], {
      tools: [now],
    });
    expect(results).toEqual(["{}"]);
    expect(bodies[1]?.["messages"]).toMatchObject([
      {},
      { tool_calls: [{ function: { name: "now", arguments: "{}" } }] },
      { role: "tool" },
    ]);
  });

  test("malformed arguments go back to it", async () => {
    const bad = callDelta({ function: { name: "add", arguments: '{"a": 2' } });
    const { results, text } = await ask([streamed(bad, chunk({}, "stop")), answer]);
    expect(results[0]).toContain("are not valid JSON");
    expect(text).toBe("It is 5.");
  });
});

test("tool_choice counts for the first round, max_tokens for all", async () => {
  const { bodies } = await ask(
    [streamed(callDelta(), chunk({}, "tool_calls"), usageChunk), answer],
    {
      request: {
        maxTokens: 100,
        stop: ["END"],
        guidance: { toolChoice: "required", parallel: false, closeAtLimit: false },
        templateVariables: { reasoning_effort: "low", enable_thinking: true },
      },
    },
  );
  expect(bodies[0]).toMatchObject({
    max_tokens: 100,
    stop: ["END"],
    tool_choice: "required",
    parallel_tool_calls: false,
    reasoning_effort: "low",
    chat_template_kwargs: { enable_thinking: true },
  });
  expect(bodies[1]).not.toHaveProperty("tool_choice");
  expect(bodies[1]).toMatchObject({ max_tokens: 91 });
});

describe("an endpoint that knows max_completion_tokens only", () => {
  const message =
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
  const refusal = status(400, { error: { message, code: "unsupported_parameter" } });
  const limits = (bodies: Record<string, unknown>[]): unknown[] =>
    bodies.map((body) => [body["max_tokens"], body["max_completion_tokens"]]);

  test("is asked again with that name, and from then on", async () => {
    const round = streamed(callDelta(), chunk({}, "tool_calls"), usageChunk);
    const { text, bodies } = await ask([refusal, round, answer], { request: { maxTokens: 100 } });
    expect(text).toBe("It is 5.");
    expect(limits(bodies)).toEqual([
      [100, undefined],
      [undefined, 100],
      [undefined, 91],
    ]);
  });

  test("is not asked a third time", async () => {
    const { error, bodies } = await ask([refusal], { request: { maxTokens: 100 } });
    expect(error).toMatchObject({ code: "endpoint_failed" });
    expect(limits(bodies)).toEqual([
      [100, undefined],
      [undefined, 100],
    ]);
  });
});

test("cancelling closes the connection", async () => {
  const abort = new AbortController();
  const { finish, text } = await ask([silent(chunk({ content: "Well" }))], {
    request: { signal: abort.signal },
    onEvent: ({ type }) => {
      if (type === "content") abort.abort();
    },
  });
  expect([text, finish?.reason]).toEqual(["Well", "cancelled"]);
  for (;;) {
    if ((await fake.connections()) === 0) break;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
});

const offered = {
  temperature: 0.5,
  top_k: 40,
  min_p: 0.1,
  typical_p: 0.9,
  top_n_sigma: 1.5,
  repeat_penalty: 1.1,
  repeat_last_n: 32,
  xtc_probability: 0.5,
  xtc_threshold: 0.2,
  dynatemp_range: 0.3,
  dynatemp_exponent: 1.2,
  dry_multiplier: 0.8,
  dry_base: 2,
  dry_allowed_length: 3,
  dry_penalty_last_n: 100,
  dry_sequence_breakers: ["\n"],
  mirostat: 2,
  mirostat_tau: 4,
  mirostat_eta: 0.2,
  min_keep: 5,
};
const off = {
  top_k: -1,
  top_n_sigma: -1,
  xtc_probability: 0,
  dynatemp_range: 0,
  dry_multiplier: 0,
  dry_base: 2,
  mirostat: 0,
  mirostat_tau: 5,
  min_keep: 0,
};
test.each([
  ["every sampler goes on under llama-server's name", offered, offered],
  ["samplers that are off are not sent", { ...off, temperature: 0.5 }, { temperature: 0.5 }],
])("%s", async (_name, body, sent) => {
  const sampling = { ...greedy, temperature: 1, penaltyLastN: 64 };
  const limits = { sampling, contextSize: 1000, vocabularySize: 1000 };
  const { bodies } = await ask([answer], { request: { sampling: readSampling(body, limits) } });
  expect(bodies[0]).toEqual({ ...unsampled, ...sent });
});

test("a budget that was spent during a hold is not asked for more", async () => {
  await serve(streamed(callDelta(), chunk({}, "tool_calls")), answer);
  const config = { url: fake.url, model: "far", apiKey: null, timeoutMs: 5000, contextSize: 1000 };
  const generation = new RemoteChat(config).generate({
    messages: [{ role: "user", content: "2 + 3?" }],
    tools: [add.definition],
    toolMode: "internal",
    sampling: greedy,
    stop: [],
    owner: "me",
  });
  let last: ChatEvent | undefined;
  for await (const event of generation) {
    last = event;
    if (event.type !== "hold") continue;
    const outputs = event.calls.map(({ id, name }) => ({ callId: id, name, content: "5" }));
    await generation.resume(outputs, { maxTokens: 0 });
  }
  expect(last).toMatchObject({ type: "finish", reason: "length" });
  expect(fake.requests).toHaveLength(1);
});
