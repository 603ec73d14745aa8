/** Large bodies: what is refused by its size, and that other streams have their turn while one is read. */

import { Readable } from "node:stream";
import { afterEach, expect, test } from "vitest";
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
