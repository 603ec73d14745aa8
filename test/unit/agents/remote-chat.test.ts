// Another server as a chat, over a real socket. The server is a fake that contradicts itself, breaks off and hangs.
import { afterEach, describe, expect, test } from "vitest";
import { RemoteChat } from "../../../src/agents/remote/remote-chat.ts";
import { FermataError } from "../../../src/errors.ts";
import { readSampling } from "../../../src/server/body/generation.ts";
import { defineTool } from "../../../src/tools/tool-builder.ts";
import { runToolLoop } from "../../../src/tools/tool-loop.ts";
import type { ChatEvent, ChatRequest, ToolLogger } from "../../../src/chat/types.ts";
import type { ToolEvent } from "../../../src/tools/types.ts";
import {
  broken,
  chunk,
  type FakeAnswer,
  type FakeEndpoint,
  silent,
  startFakeEndpoint,
  status,
  streamed,
  streamedWithoutDone,
  usageChunk,
  whole,
} from "../../support/fake-endpoint.ts";
import { greedy } from "../../support/sampling.ts";
import { collectGarbage } from "../../support/memory-in-use.ts";

let fake: FakeEndpoint;
afterEach(() => fake.close());

const said: string[] = [];
const logger: ToolLogger = {
  info: () => {},
  warn: (_details, message) => said.push(message),
  error: (_details, message) => said.push(message),
};

const add = defineTool("add", "Add two numbers")
  .param("a", "integer", "First", true)
  .param("b", "integer", "Second", true)
  .run(({ a, b }) => String(Number(a) + Number(b)));

const args = '{"a": 2, "b": 3}';
const callDelta = (fields: object = {}): object =>
  chunk({
    tool_calls: [
      {
        index: 0,
        id: "x",
        type: "function",
        function: { name: "add", arguments: args },
        ...fields,
      },
    ],
  });
/** The body of the question that `ask` asks, without samplers. */
const unsampled = {
  model: "far",
  stream: true,
  stream_options: { include_usage: true },
  messages: [{ role: "user", content: "2 + 3?" }],
  seed: 0,
  tools: [{ type: "function", function: add.definition }],
};
const answer = streamed(chunk({ content: "It is " }), chunk({ content: "5." }, "stop"), usageChunk);

async function ask(
  answers: FakeAnswer[],
  {
    request = {},
    timeoutMs = 30_000,
    onEvent = () => {},
  }: {
    request?: Partial<ChatRequest>;
    timeoutMs?: number;
    onEvent?: (event: ChatEvent | ToolEvent) => void;
  } = {},
) {
  fake = await startFakeEndpoint(...answers);
  said.length = 0;
  const config = { url: fake.url, model: "far", apiKey: "key", timeoutMs, contextSize: 1000 };
  const chat = new RemoteChat(config);
  const events: (ChatEvent | ToolEvent)[] = [];
  let error: unknown = null;
  const body = {
    messages: [{ role: "user" as const, content: "2 + 3?" }],
    sampling: greedy,
    stop: [],
    owner: "me",
    ...request,
  };
  try {
    for await (const event of runToolLoop(chat, body, [add], { logger })) {
      events.push(event);
      onEvent(event);
    }
  } catch (thrown) {
    error = thrown;
  }
  const text = events.map((event) => (event.type === "content" ? event.text : "")).join("");
  const results = events.flatMap((event) => (event.type === "tool-end" ? event.content : []));
  const last = events.at(-1);
  const finish = last?.type === "finish" ? last : null;
  return { events, text, results, finish, error, bodies: fake.requests.map(({ body: it }) => it) };
}

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
      tool_calls: [{ id, type: "function", function: { name: "add", arguments: args } }],
    },
    { role: "tool", tool_call_id: id, content: "5" },
  ]);
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

  test("malformed arguments go back to it", async () => {
    const bad = callDelta({ function: { name: "add", arguments: '{"a": 2' } });
    const { results, text } = await ask([streamed(bad, chunk({}, "stop")), answer]);
    expect(results[0]).toContain("are not valid JSON");
    expect(text).toBe("It is 5.");
  });
});

describe("what cannot be mended is an error that says so", () => {
  const html = "<html>Bad gateway</html>";
  const fails: [name: string, answers: FakeAnswer[], problem: string, tries: number][] = [
    [
      "a reason of error, no calls",
      [streamed(chunk({ content: "a" }, "error"))],
      "with an error",
      1,
    ],
    [
      "a stream that just ends",
      [streamedWithoutDone(chunk({ content: "a" }))],
      "cut its answer",
      1,
    ],
    ["a connection that breaks", [broken(chunk({ content: "a" }))], "broke off", 1],
    ["a call that breaks off", [broken(callDelta())], "broke off", 1],
    ["an error in the stream", [streamed({ error: { message: "No GPU." } })], ": No GPU.", 1],
    ["no JSON", [(response) => void response.end("hello")], "not JSON", 1],
    ["an error with status 200", [status(200, { error: "No." })], "reports an error: No.", 1],
    ["500 each time", [status(500, html)], "answered 500.", 3],
    ["529, as of servers that are overloaded", [status(529, html)], "answered 529.", 3],
    ["401", [status(401, { error: { message: "Bad key." } })], "answered 401: Bad key.", 1],
    ["a redirect", [status(302, "", { location: "http://127.0.0.1:1" })], "answered 302", 1],
  ];
  test.each(fails)("%s", async (_name, answers, problem, tries) => {
    const { error, results } = await ask(answers);
    expect(error).toBeInstanceOf(FermataError);
    expect((error as FermataError).code).toBe("endpoint_failed");
    expect((error as FermataError).message).toContain(problem);
    expect(results).toEqual([]);
    expect(fake.requests).toHaveLength(tries);
  });

  test("a silent one is given up, whatever is collected meanwhile", async () => {
    const collecting = setInterval(collectGarbage, 100);
    const { error, text } = await ask([silent(chunk({ content: "Well" }))], { timeoutMs: 2000 });
    clearInterval(collecting);
    expect((error as FermataError).message).toContain("said nothing for 2 seconds");
    expect(text).toBe("Well");
  });

  test("503, then an answer", async () => {
    const busy = status(503, "", { "retry-after": "0" });
    const { text } = await ask([busy, busy, answer]);
    expect([text, fake.requests.length]).toEqual(["It is 5.", 3]);
  });

  test.each<[field: string, request: Partial<ChatRequest>]>([
    ["logprobs", { topLogprobs: 2 }],
    ["close_at_limit", { guidance: { toolChoice: "auto", parallel: true, closeAtLimit: true } }],
  ])("%s, which another server cannot be asked for, is refused first", async (param, request) => {
    const { error } = await ask([answer], { request });
    expect(error).toMatchObject({ code: "unsupported_value", param });
    expect(fake.requests).toEqual([]);
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
  fake = await startFakeEndpoint(streamed(callDelta(), chunk({}, "tool_calls")), answer);
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
