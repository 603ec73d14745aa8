/** Large bodies: what is refused by its size, and that other streams have their turn while one is read. */

import { Readable } from "node:stream";
import { afterEach, expect, test, vi } from "vitest";
import { createWorld, type World } from "./fake-services.ts";

let world: World;
afterEach(() => world.app.close());

const chatBody = (content: string) => JSON.stringify({ messages: [{ role: "user", content }] });

async function send(payload: string | Readable, url = "/v1/chat/completions") {
  const headers = { "content-type": "application/json" };
  return await world.app.inject({ method: "POST", url, headers, payload });
}

test.each([true, false])("longer than the limit, length told: %s", async (isTold) => {
  world = createWorld({ config: { maxBodyBytes: 2 ** 20 } });
  const body = chatBody("a".repeat(2 ** 20));
  const reply = await send(isTold ? body : Readable.from([body.slice(0, 1000), body.slice(1000)]));
  expect(reply.statusCode).toBe(413);
  expect(reply.json().error).toMatchObject({
    code: "body_too_large",
    param: "body",
    message: expect.stringContaining(
      "1 MiB. Send less, or start the server with a higher --max-body",
    ),
  });
  expect(world.chat.requests).toEqual([]);
});

test("without an option the limit is 4 MiB", async () => {
  world = createWorld();
  const room = 4 * 2 ** 20 - chatBody("").length;
  expect((await send(chatBody("a".repeat(room)))).statusCode).toBe(200);
  const reply = await send(chatBody("a".repeat(room + 1)));
  expect(reply.statusCode).toBe(413);
  expect(reply.json().error.message).toContain("4 MiB");
});

test("a posted output may be as large as the server takes outputs", async () => {
  world = createWorld({ config: { maxBodyBytes: 2 ** 20, maxToolOutputBytes: 2 ** 21 } });
  const url = "/v1/responses/resp_none/tool_outputs";
  const body = JSON.stringify({ output: "a\n".repeat(2 ** 20) });
  expect((await send(body, url)).json().error.code).toBe("missing_field");
});

test.each([
  ["numbers", "0,"],
  ["lists", "[],"],
  ["objects", '{"a":1},'],
])("too many values: %s", async (_what, piece) => {
  world = createWorld();
  const values = piece.repeat(210_000);
  const reply = await send(`{"messages":[{"role":"user","content":"Hi"}],"x":[${values}0]}`);
  expect(reply.statusCode).toBe(413);
  expect(reply.json().error).toMatchObject({ code: "body_too_large", param: "body" });
});

const items = (count: number) => ({ x: Array.from({ length: count }, () => 0) });
const keys = (count: number) => ({
  x: Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 0])),
});

/** `x` and `prompt` are keys too. */
test.each([
  ["an item for each 20 bytes of the limit", items(52_428 - 4), 200],
  ["one more", items(52_428 - 3), 413],
  ["a key for each 40", keys(26_214 - 2), 200],
  ["one more", keys(26_214 - 1), 413],
])("%s", async (_what, x, status) => {
  world = createWorld({ config: { maxBodyBytes: 2 ** 20 } });
  const reply = await send(JSON.stringify({ prompt: "Hi", ...x }), "/v1/completions");
  expect(reply.statusCode, reply.body.slice(0, 300)).toBe(status);
  if (status === 413)
    expect(reply.json().error.message).toContain("more than 52428 list items, where a key");
});

test("commas, brackets and quotes of a text are no values", async () => {
  world = createWorld();
  const content = `[{"a": "b\\\\", ${'"\\,:[{é'.repeat(200_000)}`;
  expect((await send(chatBody(content))).statusCode).toBe(200);
  expect(world.chat.requests[0]!.messages[0]!.content).toBe(content);
});

test("others have their turn while a body is read and before it is worked on", async () => {
  world = createWorld({ config: { maxBodyBytes: 8 * 2 ** 20 } });
  let turns = 0;
  const atHandler: number[] = [];
  world.chat.scriptFor = () => {
    atHandler.push(turns);
    return world.chat.script;
  };
  const count = (): void => {
    turns += 1;
    if (atHandler.length < 2) setImmediate(count);
  };
  count();
  await send(chatBody("Hi"));
  const before = turns;
  await send(chatBody("a".repeat(7 * 2 ** 20)));
  const [short, long] = atHandler as [number, number];
  expect(short).toBeLessThan(10);
  expect(long - before).toBeGreaterThan(25);
});

test.each([
  ["/v1/chat/completions", "messages"],
  ["/v1/responses", "input"],
])("others have their turn while 10,000 messages are read: %s", async (url, field) => {
  world = createWorld();
  let turns = 0;
  let atHandler: number | null = null;
  world.chat.scriptFor = () => {
    atHandler ??= turns;
    return world.chat.script;
  };
  const sent = Array.from({ length: 10_000 }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: Array.from({ length: 2 }, (_unused, part) => ({ type: "text", text: `${part}` })),
  }));
  const payload = JSON.stringify({ [field]: sent });
  const ended = send(payload, url);
  const count = (): void => {
    turns += 1;
    if (atHandler === null) setImmediate(count);
  };
  count();
  expect((await ended).statusCode).toBe(200);
  // Slices of the body, and before the fields and behind the values.
  const slices = Math.ceil(payload.length / 2 ** 18);
  expect(atHandler! - slices).toBeGreaterThan(5);
});

const dialogue = Array.from({ length: 3000 }, (_, index) => ({
  role: index % 2 === 0 ? "user" : "assistant",
  content: `${index}`,
}));
const asked = [...dialogue, { role: "user", content: "And now?" }];
const ids = Array.from({ length: 3000 }, (_, index) => index % 100);

/** Turns of the event loop until the answer is there. Each look at the clock takes a millisecond, on any machine. */
async function turnsOf(body: object, url: string) {
  let now = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => (now += 1));
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  count();
  try {
    return { reply: await send(JSON.stringify(body), url), turns };
  } finally {
    isOver = true;
    clock.mockRestore();
  }
}

test.each<[string, object]>([
  ["/v1/chat/completions", { messages: asked }],
  ["/v1/chat/completions/input_tokens", { messages: asked }],
  ["/v1/messages", { messages: asked, max_tokens: 9 }],
  ["/v1/messages/count_tokens", { messages: asked }],
  ["/api/chat", { messages: asked, stream: false }],
  ["/apply-template", { messages: asked }],
  ["/v1/responses", { input: asked }],
  ["/v1/responses/input_tokens", { input: asked }],
  ["/v1/completions", { prompt: ids }],
  ["/v1/completions", { prompt: [ids] }],
  ["/detokenize", { tokens: ids }],
])("a list of 3,000 is read in parts: %s", async (url, body) => {
  world = createWorld();
  const { reply, turns } = await turnsOf(body, url);
  expect(reply.statusCode, reply.body).toBe(200);
  expect(turns).toBeGreaterThan(300);
});

test("the tokens of a long text are written in parts", async () => {
  world = createWorld();
  const content = "a".repeat(2_000_000);
  const { reply, turns } = await turnsOf({ content }, "/tokenize");
  expect(reply.headers["content-type"]).toBe("application/json; charset=utf-8");
  expect(reply.json()).toEqual({ tokens: Array.from(content, () => 97) });
  // Some more than the slices of the body.
  expect(turns).toBeGreaterThan(30);
});

test("a prompt of several pieces is all of them", async () => {
  world = createWorld();
  const prompt = ["a".repeat(2000), 5, "b"];
  const reply = await send(JSON.stringify({ prompt, n_predict: 1 }), "/completion");
  expect(reply.statusCode, reply.body).toBe(200);
  const { prompt: tokens } = world.text.requests[0]!;
  expect([tokens.length, ...tokens.slice(-3)]).toEqual([2002, 97, 5, 98]);
});
