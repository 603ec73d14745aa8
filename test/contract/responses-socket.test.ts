/** WebSocket mode of Responses: the same requests and events as POST, over one connection. */

import { once } from "node:events";
import { createConnection, type AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { WebSocket, type ClientOptions } from "ws";
import { FermataError } from "../../src/errors.ts";
import { callEvents, finish } from "./fake-services.ts";
import { createResponsesWorld, type Json, type ResponsesWorld } from "./responses-world.ts";

const key = "key-of-tests";
const hang = [{ type: "content" as const, text: "Hel" }, { hang: true as const }];
let world: ResponsesWorld;
let port: number;

async function listen(config = {}): Promise<void> {
  world = await createResponsesWorld({ config });
  await world.app.listen({ port: 0, host: "127.0.0.1" });
  ({ port } = world.app.server.address() as AddressInfo);
}

beforeEach(async () => listen());
afterEach(() => world.close());

class Client {
  readonly socket: WebSocket;
  readonly events: Json[] = [];
  readonly closed: Promise<number>;
  #wake = (): void => {};

  constructor(options: ClientOptions = {}) {
    this.socket = new WebSocket(`ws://127.0.0.1:${port}/v1/responses`, options);
    this.closed = once(this.socket, "close").then(([code]) => code);
    this.socket.on("message", (data) => {
      this.events.push(JSON.parse((data as Buffer).toString()));
      this.#wake();
    });
  }

  async open(): Promise<this> {
    await once(this.socket, "open");
    return this;
  }

  send(body: object): void {
    this.socket.send(JSON.stringify({ type: "response.create", ...body }));
  }

  /** The events up to the next of this type, which leave the list. */
  async until(type: string): Promise<Json[]> {
    for (;;) {
      const at = this.events.findIndex((event) => event.type === type);
      if (at >= 0) return this.events.splice(0, at + 1);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** The status and body of a refused upgrade. */
async function refusal(options: ClientOptions): Promise<{ status: number; body: Json }> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/responses`, options);
  const [request, response] = await once(socket, "unexpected-response");
  let text = "";
  for await (const chunk of response) text += chunk;
  request.destroy();
  return { status: response.statusCode, body: JSON.parse(text) };
}

test("events are those of a stream, request after request", async () => {
  const client = await new Client().open();
  const streamed = await world.streamed({ input: "Hi" });
  const withoutIds = (events: Json[]): string =>
    JSON.stringify(events)
      .replaceAll(/(resp|msg)_\w+/g, "$1")
      .replaceAll(/_at":\d+/g, '_at"');
  for (const _ of [1, 2]) {
    client.send({ input: "Hi" });
    expect(withoutIds(await client.until("response.completed"))).toBe(withoutIds(streamed));
  }
  const [first, second] = world.chat.requests.slice(1);
  expect(second!.messages).toEqual(first!.messages);
  client.socket.close();
});

test("requests that were sent together run one after the other", async () => {
  const client = await new Client().open();
  client.send({ input: "First" });
  client.send({ input: "Second" });
  const first = await client.until("response.completed");
  const second = await client.until("response.completed");
  expect(first.map((event) => event.sequence_number)).toEqual(first.map((_, index) => index));
  expect(second[0].sequence_number).toBe(0);
  expect(world.chat.requests.map(({ messages }) => messages.at(-1)!.content)).toEqual([
    "First",
    "Second",
  ]);
  client.socket.close();
});

test("what is not stored is remembered by its connection alone", async () => {
  const client = await new Client().open();
  client.send({ input: "My name is Ada.", store: false });
  const { response } = (await client.until("response.completed")).at(-1);
  const next = { input: "Who am I?", previous_response_id: response.id, store: false };
  const other = await new Client().open();
  other.send(next);
  expect((await other.until("error"))[0]).toMatchObject({
    status: 400,
    error: { code: "previous_response_not_found", param: "previous_response_id" },
  });
  client.send(next);
  const after = (await client.until("response.completed")).at(-1).response;
  expect(after.previous_response_id).toBe(response.id);
  const { messages } = world.chat.requests.at(-1)!;
  expect(messages.map(({ content }) => content)).toEqual([
    "My name is Ada.",
    "Hello.",
    "Who am I?",
  ]);
  // Its successor took its place.
  client.send(next);
  expect((await client.until("error"))[0].error.code).toBe("previous_response_not_found");
  client.socket.close();
  other.socket.close();
});

test("a request that does not fit takes nothing from the one that it follows", async () => {
  world.chat.script = [{ type: "content", text: "Hello." }, finish("stop")];
  const client = await new Client().open();
  client.send({ input: "Hi", store: false });
  const { response } = (await client.until("response.completed")).at(-1)!;
  const tooLong = new FermataError("context_length_exceeded", "Too long.", { param: "messages" });
  const script = world.chat.script;
  world.chat.script = [{ fail: tooLong }];
  const next = { previous_response_id: response.id, store: false };
  client.send({ ...next, input: "Much more" });
  expect((await client.until("response.failed")).at(-1)!.response.error.code).toBe(tooLong.code);
  world.chat.script = script;
  client.send({ ...next, input: "More" });
  await client.until("response.completed");
});

test("a request that is refused ends the chain that it follows, as at OpenAI, and no other", async () => {
  const client = await new Client().open();
  client.send({ input: "Hi", store: false });
  const { response } = (await client.until("response.completed")).at(-1)!;
  client.send({ input: "Hi", temperature: "hot" });
  client.send({ input: "Hi", previous_response_id: "resp_other", store: false });
  const next = { previous_response_id: response.id, store: false };
  client.send({ ...next, input: "On" });
  const last = (await client.until("response.completed")).at(-1)!.response.id;
  const output = { type: "function_call_output", call_id: "call_none", output: "?" };
  const then = { previous_response_id: last, store: false };
  client.send({ ...then, input: [output] });
  expect((await client.until("error")).at(-1)!.error.param).toBe("input[0].call_id");
  client.send({ ...then, input: "On" });
  expect((await client.until("error")).at(-1)!.error.code).toBe("previous_response_not_found");
});

test("a stored response that follows one that is not can be followed everywhere", async () => {
  const client = await new Client().open();
  client.send({ input: "One", store: false });
  const { response } = (await client.until("response.completed")).at(-1);
  client.send({ input: "Two", previous_response_id: response.id });
  const stored = (await client.until("response.completed")).at(-1).response;
  client.socket.close();
  const { body } = await world.create({ input: "Three", previous_response_id: stored.id });
  expect(body.status).toBe("completed");
  const { messages } = world.chat.requests.at(-1)!;
  expect(messages.map(({ content }) => content)).toEqual([
    "One",
    "Hello.",
    "Two",
    "Hello.",
    "Three",
  ]);
});

test("generate: false reads the prompt and answers nothing", async () => {
  const client = await new Client().open();
  client.send({ input: "Hi", generate: false });
  const { response } = (await client.until("response.completed")).at(-1);
  const whole = { status: "completed", incomplete_details: null, output: [] };
  expect(response).toMatchObject(whole);
  expect(response.completed_at).toEqual(expect.any(Number));
  const stored = await world.app.inject({ url: `/v1/responses/${response.id}` });
  expect(stored.json()).toMatchObject(whole);
  client.send({ input: "Go on", previous_response_id: response.id });
  await client.until("response.completed");
  const { messages } = world.chat.requests.at(-1)!;
  expect(messages.map(({ content }) => content)).toEqual(["Hi", "Go on"]);
  client.socket.close();
});

test("a server that holds streams does not hold them: the outputs would wait behind their response", async () => {
  await world.close();
  await listen({ responsesTools: "held" });
  const call = { id: "call_1", name: "f", arguments: "{}" };
  world.chat.scriptFor = () =>
    world.chat.requests.length === 1
      ? [...callEvents(call), finish("tool_calls", [call])]
      : [{ type: "content", text: "Done." }, finish("stop")];
  const client = await new Client().open();
  const tools = [{ type: "function", name: "f" }];
  client.send({ input: "Hi", tools });
  const { response } = (await client.until("response.completed")).at(-1);
  const output = { type: "function_call_output", call_id: "call_1", output: "x" };
  client.send({ input: [output], previous_response_id: response.id, tools });
  const last = (await client.until("response.completed")).at(-1);
  expect(last.response.output).toMatchObject([{ content: [{ text: "Done." }] }]);
  client.socket.close();
});

test.each([
  { type: "response.cancel" },
  { event_id: "event_1", type: "response.cancel", response_id: "resp_1" },
])("%j ends the response and the next request is answered", async (cancel) => {
  const client = await new Client().open();
  const { script } = world.chat;
  world.chat.script = hang;
  client.send({ input: "Hi" });
  await client.until("response.output_text.delta");
  world.chat.script = script;
  client.socket.send(JSON.stringify(cancel));
  client.send({ input: "Hi" });
  const events = await client.until("response.completed");
  expect(events.map(({ response }) => response?.status).filter(Boolean)).toContain("cancelled");
  expect(world.chat.cancelledCount).toBe(1);
  client.socket.close();
});

test("response.processed gets no answer, which would be read as that of the next request", async () => {
  const client = await new Client().open();
  client.send({ input: "Hi" });
  const { response } = (await client.until("response.completed")).at(-1);
  client.socket.send(JSON.stringify({ type: "response.processed", response_id: response.id }));
  client.send({ input: "Hi" });
  const events = await client.until("response.completed");
  expect(events[0].type).toBe("response.created");
  client.socket.close();
});

test("response.cancel ends one in the background, too, and the next request is answered", async () => {
  const client = await new Client().open();
  const { script } = world.chat;
  world.chat.script = hang;
  client.send({ input: "Hi", background: true });
  await client.until("response.output_text.delta");
  world.chat.script = script;
  client.socket.send(JSON.stringify({ type: "response.cancel" }));
  client.send({ input: "Hi" });
  const events = await client.until("response.completed");
  expect(events.map(({ response }) => response?.status).filter(Boolean)).toContain("cancelled");
  client.socket.close();
});

test("of requests without end, empty ones too, some wait, and who does not read the refusals is disconnected", async () => {
  const client = await new Client().open();
  world.chat.script = hang;
  client.send({ input: "Hi" });
  await client.until("response.output_text.delta");
  for (let count = 0; count <= 1000; count++) client.socket.send("");
  expect((await client.until("error")).at(-1).error.code).toBe("queue_full");
  client.socket.pause();
  for (let count = 0; count < 40_000; count++) client.socket.send("");
  await expect.poll(() => world.chat.cancelledCount).toBe(1);
  client.socket.terminate();
});

test("a client that goes cancels its response", async () => {
  const client = await new Client().open();
  world.chat.script = hang;
  client.send({ input: "Hi" });
  await client.until("response.output_text.delta");
  client.socket.terminate();
  await expect.poll(() => world.chat.cancelledCount).toBe(1);
});

test.each([
  ["{", "invalid_json", null],
  ["[]", "invalid_json", null],
  ["[".repeat(5000), "invalid_json", null],
  ['{"type": "session.update"}', "invalid_value", "type"],
  ['{"type": "response.create", "input": 5}', "invalid_type", "input"],
  ['{"type": "response.create", "input": "Hi", "generate": 1}', "invalid_type", "generate"],
  ['{"type": "response.create", "__proto__": {"input": "Hi"}}', "missing_field", "input"],
])("%.60s is an error event, and the connection stays", async (text, code, param) => {
  const client = await new Client().open();
  client.socket.send(text);
  const [event] = await client.until("error");
  expect(event).toMatchObject({ status: 400, code, error: { code, message: expect.any(String) } });
  if (param !== null) expect(event.param).toBe(param);
  client.send({ input: "Hi" });
  await client.until("response.completed");
  client.socket.close();
});

test("a message larger than --max-body closes with 1009, a binary one is an error", async () => {
  await world.close();
  await listen({ maxBodyBytes: 10_000 });
  const client = await new Client().open();
  client.socket.send(Buffer.from("{}"), { binary: true });
  expect((await client.until("error"))[0].error.code).toBe("invalid_request");
  client.send({ input: "a".repeat(10_000) });
  expect(await client.closed).toBe(1009);
});

test("keys, other sites' pages and plain GETs are refused over HTTP", async () => {
  await world.close();
  await listen({ apiKeys: [key] });
  expect(await refusal({})).toMatchObject({
    status: 401,
    body: { error: { code: "unauthorized" } },
  });
  const headers = { authorization: `Bearer ${key}` };
  const ofOther = await refusal({ headers, origin: "https://evil.example" });
  expect(ofOther).toMatchObject({ status: 403, body: { error: { param: "origin" } } });
  const ofOwn = await new Client({ headers, origin: `http://127.0.0.1:${port}` }).open();
  ofOwn.socket.close();
  const plain = await fetch(`http://127.0.0.1:${port}/v1/responses`, { headers });
  expect(plain.status).toBe(405);
});

test("a name that is not this machine's is refused", async () => {
  const reply = await refusal({ headers: { host: "rebound.example" } });
  expect(reply).toMatchObject({ status: 403, body: { error: { code: "host_not_allowed" } } });
});

test("the server's end closes idle connections with 1001, and others behind their response", async () => {
  await world.close();
  await listen({ drainMs: 60_000 });
  const idle = await new Client().open();
  const busy = await new Client().open();
  let finishIt = (): void => {};
  const waited = new Promise<void>((resolve) => (finishIt = resolve));
  world.chat.script = [
    { type: "content", text: "Hel" },
    { prepare: () => waited },
    { type: "content", text: "lo." },
    finish("stop"),
  ];
  busy.send({ input: "Hi" });
  await busy.until("response.output_text.delta");
  const closed = world.app.close();
  expect(await idle.closed).toBe(1001);
  finishIt();
  await busy.until("response.completed");
  expect(await busy.closed).toBe(1001);
  await closed;
});

test("pings go to silent clients, and one that does not answer is disconnected", async () => {
  await world.close();
  await listen({ keepAliveMs: 20, stalledMs: 3000 });
  const answering = await new Client().open();
  await once(answering.socket, "ping");
  const silent = await new Client({ autoPong: false }).open();
  expect(await silent.closed).toBe(1006);
  expect(answering.socket.readyState).toBe(WebSocket.OPEN);
  answering.socket.close();
});

test("while the prompt is read, the last event comes again, and after the first text it does not", async () => {
  await world.close();
  await listen({ keepAliveMs: 5 });
  world.chat.script = [{ hang: true }];
  const waiting = await new Client().open();
  waiting.send({ input: "Hi" });
  await waiting.until("response.in_progress");
  for (let i = 0; i < 2; i++) {
    const again = await waiting.until("response.in_progress");
    expect(again).toMatchObject([{ type: "response.in_progress", sequence_number: 1 }]);
  }
  waiting.socket.close();
  await waiting.closed;

  world.chat.script = hang;
  const reading = await new Client().open();
  reading.send({ input: "Hi" });
  await reading.until("response.output_text.delta");
  for (let pings = 0; pings < 9; pings++) await once(reading.socket, "ping");
  expect(reading.events).toEqual([]);
  reading.socket.close();
});

test.each([
  [
    "connection: Upgrade, HTTP2-Settings",
    "upgrade: h2c",
    "http2-settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA",
  ],
  // A handshake is a GET.
  ["connection: Upgrade", "upgrade: websocket"],
])(
  "an offer of another protocol is passed over, and the request answered: %s",
  async (...offer) => {
    const body = JSON.stringify({ input: "Hi" });
    const socket = createConnection(port, "127.0.0.1");
    const headers = [
      "POST /v1/responses HTTP/1.1",
      `host: 127.0.0.1:${port}`,
      ...offer,
      "content-type: application/json",
      `content-length: ${body.length}`,
    ];
    socket.write(`${headers.join("\r\n")}\r\n\r\n${body}`);
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    socket.destroy();
  },
);

test("openai's client: events, an error, and a second turn", async () => {
  const openai = new OpenAI({ baseURL: `http://127.0.0.1:${port}/v1`, apiKey: "none" });
  const client = new ResponsesWS(openai);
  const errors: unknown[] = [];
  client.on("error", (error) => errors.push(error.error));
  const completed = (): Promise<OpenAI.Responses.Response> =>
    new Promise((resolve) => client.once("response.completed", (event) => resolve(event.response)));
  const first = completed();
  client.send({ type: "response.create", model: "any", input: "Hi" });
  const { id } = await first;
  const refused = new Promise((resolve) => client.once("error", resolve));
  client.send({ type: "response.create", model: "any", temperature: 9 });
  await refused;
  expect(errors).toMatchObject([{ error: { type: "invalid_request_error" } }]);
  const second = completed();
  client.send({ type: "response.create", model: "any", input: "So?", previous_response_id: id });
  expect((await second).previous_response_id).toBe(id);
  client.close();
});
