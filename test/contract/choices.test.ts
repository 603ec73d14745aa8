import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import type { ContentToken } from "../../src/chat/types.ts";
import { usage } from "./fake-figures.ts";
import { createWorld, fakeTool, finish, post, provider, sseEvents } from "./fake-services.ts";

type Completion = OpenAI.ChatCompletion;
type Chunk = OpenAI.ChatCompletionChunk;

const hello = { messages: [{ role: "user", content: "Hi" }] };
const bytes = (text: string) => new TextEncoder().encode(text);
const tokens: ContentToken[] = [
  { bytes: bytes("Hé"), logprob: -0.5, top: [{ bytes: bytes("Hé"), logprob: -0.5 }] },
  {
    bytes: Uint8Array.of(0xc3),
    logprob: Number.NEGATIVE_INFINITY,
    top: [{ bytes: bytes(" y"), logprob: -0.25 }],
  },
];
const wireTokens = [
  {
    token: "Hé",
    logprob: -0.5,
    bytes: [72, 195, 169],
    top_logprobs: [{ token: "Hé", logprob: -0.5, bytes: [72, 195, 169] }],
  },
  {
    token: "\ufffd",
    logprob: -9999,
    bytes: [195],
    top_logprobs: [{ token: " y", logprob: -0.25, bytes: [32, 121] }],
  },
];

describe("n", () => {
  test("choices have indices and seeds of their own; the prompt counts once", async () => {
    const { app, chat } = createWorld();
    const body: Completion = (await post(app, { ...hello, n: 3, seed: 4294967294 })).json();
    expect(body.choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, "Hello."],
      [1, "Hello."],
      [2, "Hello."],
    ]);
    expect(chat.requests.map(({ sampling }) => sampling.seed)).toEqual([4294967294, 4294967295, 0]);
    expect(body.usage).toMatchObject({
      prompt_tokens: 25,
      completion_tokens: 21,
      total_tokens: 46,
      prompt_tokens_details: { cached_tokens: 12 },
    });
  });

  test("what each has thought counts", async () => {
    const { app, chat } = createWorld();
    const end = { type: "finish" as const, reason: "stop" as const, calls: [] };
    chat.script = [{ ...end, usage: { ...usage, reasoningTokens: 3 } }];
    const body: Completion = (await post(app, { ...hello, n: 3 })).json();
    expect(body.usage).toMatchObject({
      completion_tokens: 21,
      completion_tokens_details: { reasoning_tokens: 9 },
    });
  });

  test("a stream interleaves them and ends with one usage chunk", async () => {
    const { app, chat } = createWorld();
    chat.script = [
      { type: "content", text: "a" },
      { type: "content", text: "b" },
      finish("length"),
    ];
    const options = { n: 2, stream: true, stream_options: { include_usage: true } };
    const events = sseEvents((await post(app, { ...hello, ...options })).body);
    expect(events.at(-1)).toBe("[DONE]");
    const chunks = events.slice(0, -1) as Chunk[];
    const pieces = chunks.flatMap(({ choices }) => choices);
    for (const index of [0, 1]) {
      expect(
        pieces.filter((piece) => piece.index === index).map((piece) => piece.delta.content),
      ).toEqual([null, "a", "b", undefined]);
    }
    expect(pieces.map(({ index }) => index)).toEqual([0, 1, 0, 1, 0, 1, 0, 1]);
    expect(chunks.filter(({ usage }) => usage)).toEqual([chunks.at(-1)]);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 14 } });
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
  });

  test("a failure ends all", async () => {
    const { app, chat } = createWorld();
    let count = 0;
    chat.scriptFor = () => (++count === 2 ? [{ fail: new TypeError("no") }] : [{ hang: true }]);
    expect((await post(app, { ...hello, n: 3 })).statusCode).toBe(500);
    expect(chat.cancelledCount).toBe(2);
  });

  test("is refused while the server runs the tools", async () => {
    const tools = provider(fakeTool("read", { content: "", isError: false }));
    const { app } = createWorld({ tools });
    expect((await post(app, { ...hello, n: 2 })).json().error).toMatchObject({ param: "n" });
    expect((await post(app, { ...hello, n: 2, tools: [] })).statusCode).toBe(200);
  });

  test.each([0, 129, 1.5, "2"])("cannot be %j", async (n) => {
    const response = await post(createWorld().app, { ...hello, n });
    expect(response.statusCode).toBe(400);
    expect(response.json().error.param).toBe("n");
  });
});

describe("logprobs", () => {
  test("of content, not streamed", async () => {
    const { app, chat } = createWorld();
    chat.script = [
      { type: "reasoning", text: "Hm" },
      { type: "content", text: "Hé", logprobs: tokens.slice(0, 1) },
      { type: "content", text: "!", logprobs: tokens.slice(1) },
      finish("stop"),
    ];
    const body = (await post(app, { ...hello, logprobs: true, top_logprobs: 1 })).json();
    expect(chat.requests[0]!.topLogprobs).toBe(1);
    expect(body.choices[0].logprobs).toEqual({ content: wireTokens, refusal: null });
  });

  test("of content, streamed with their text", async () => {
    const { app, chat } = createWorld();
    chat.script = [
      { type: "content", text: "Hé", logprobs: tokens.slice(0, 1) },
      { type: "content", text: "!" },
      finish("stop"),
    ];
    const events = sseEvents((await post(app, { ...hello, logprobs: true, stream: true })).body);
    expect(chat.requests[0]!.topLogprobs).toBe(0);
    expect((events.slice(0, -1) as Chunk[]).map(({ choices }) => choices[0]!.logprobs)).toEqual([
      null,
      { content: wireTokens.slice(0, 1), refusal: null },
      null,
      null,
    ]);
  });

  test("an answer without content has none; nobody asked, null", async () => {
    const { app, chat } = createWorld();
    chat.script = [finish("length")];
    const asked = (await post(app, { ...hello, logprobs: true })).json();
    expect(asked.choices[0].logprobs).toEqual({ content: null, refusal: null });
    expect((await post(app, hello)).json().choices[0].logprobs).toBeNull();
  });

  test.each([
    [{ logprobs: true, top_logprobs: 21 }, "top_logprobs"],
    [{ top_logprobs: 2 }, "top_logprobs"],
    [{ logprobs: 2 }, "logprobs"],
  ])("%j is refused", async (fields, param) => {
    const response = await post(createWorld().app, { ...hello, ...fields });
    expect(response.statusCode).toBe(400);
    expect(response.json().error.param).toBe(param);
  });
});
