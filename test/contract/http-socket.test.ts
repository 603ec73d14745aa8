/** Answers over real sockets: writes, slow readers, clients that leave, the server's end. */

import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { afterEach, describe, expect, test, vi } from "vitest";
import { createWorld, finish, type World } from "./fake-services.ts";
import { eventually } from "../support/eventually.ts";

const hello = { messages: [{ role: "user", content: "Hi" }] };

let open: World | undefined;

afterEach(async () => {
  await open?.app.close();
  open = undefined;
});

async function listen(world: World): Promise<string> {
  open = world;
  return world.app.listen({ port: 0, host: "127.0.0.1" });
}

/** Sends a chat request; resolves with the response once its headers are there. */
async function send(
  url: string,
  body: object,
  path = "/v1/chat/completions",
): Promise<{ response: IncomingMessage; leave: () => void }> {
  const request = httpRequest(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
  });
  request.on("error", () => {});
  request.end(JSON.stringify(body));
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return { response, leave: () => request.destroy() };
}

describe("over a socket", () => {
  test("each event is one write", async () => {
    const world = createWorld();
    world.chat.script = [
      { type: "content", text: "a" },
      { type: "content", text: "b" },
      finish("stop"),
    ];
    const url = await listen(world);
    const { response } = await send(url, { ...hello, stream: true });
    let text = "";
    for await (const piece of response) text += String(piece);
    // Chunked encoding keeps writes apart; the parser of Node joins none of them.
    expect(text.match(/data: /g)).toHaveLength(5);
    expect(text).toMatch(/\n\ndata: \[DONE\]\n\n$/);
  });

  test("a stream is the last answer where the client asks for it", async () => {
    const url = new URL(await listen(createWorld()));
    const socket = connect(Number(url.port), url.hostname);
    const body = JSON.stringify({ ...hello, stream: true });
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json`;
    socket.write(`${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    let text = "";
    // Ends with the connection.
    for await (const piece of socket) text += String(piece);
    expect(text).toMatch(/\r\nconnection: close\r\n/i);
    expect(text).toContain("data: [DONE]");
  });

  test.each([false, true])(
    "a client that leaves cancels its generation (streamed: %s)",
    async (stream) => {
      const world = createWorld();
      world.chat.script = stream
        ? [{ type: "content", text: "a" }, { hang: true }]
        : [{ hang: true }];
      const url = await listen(world);
      const sent = send(url, { ...hello, stream }).catch(() => null);
      await eventually(() => expect(world.chat.requests).toHaveLength(1));
      if (stream) (await sent)!.leave();
      else world.app.server.closeAllConnections();
      await eventually(() => expect(world.chat.requests[0]!.signal!.aborted).toBe(true));
      await eventually(() => expect(world.chat.cancelledCount).toBe(1));
    },
  );

  test("a client that closes its sending side has left, as far as can be told", async () => {
    const world = createWorld();
    world.chat.script = [{ hang: true }];
    const url = new URL(await listen(world));
    const socket = connect(Number(url.port), url.hostname);
    const body = JSON.stringify(hello);
    socket.end(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    let answer = "";
    for await (const piece of socket) answer += String(piece);
    expect(answer).toBe("");
    await eventually(() => expect(world.chat.requests[0]?.signal!.aborted ?? true).toBe(true));
  });

  test("a client that leaves the queue before the first token cancels too", async () => {
    const world = createWorld();
    world.chat.script = [{ hang: true }];
    const url = await listen(world);
    const controller = new AbortController();
    const body = JSON.stringify({ ...hello, stream: true });
    const headers = { "content-type": "application/json" };
    const response = fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers,
      body,
      signal: controller.signal,
    });
    await eventually(() => expect(world.chat.requests).toHaveLength(1));
    controller.abort();
    await expect(response).rejects.toThrow();
    await eventually(() => expect(world.chat.cancelledCount).toBe(1));
  });

  test("a long wait opens the stream and keeps it alive with comments", async () => {
    const world = createWorld({ config: { keepAliveMs: 20 } });
    world.chat.script = [{ hang: true }];
    const url = await listen(world);
    const { response, leave } = await send(url, { ...hello, stream: true });
    let text = "";
    response.on("data", (piece: Buffer) => (text += piece.toString()));
    response.on("error", () => {});
    await eventually(() => expect(text).toContain(": keep-alive\n\n: keep-alive\n\n"));
    leave();
  });

  // Agents leave a stream that gives them no event for minutes; their parsers give them no comments.
  test.each([
    ["/v1/chat/completions", hello, { object: "chat.completion.chunk" }],
    ["/v1/messages", { ...hello, max_tokens: 9 }, { type: "ping" }],
    ["/v1/responses", { input: "Hi" }, { type: "response.in_progress", sequence_number: 1 }],
    ["/api/chat", hello, { message: { role: "assistant", content: "" }, done: false }],
    ["/api/generate", { prompt: "Hi" }, { response: "", done: false }],
  ])("a long wait on %s gives events that tell nothing new", async (path, body, expected) => {
    const world = createWorld({ config: { keepAliveMs: 5 } });
    world.chat.script = [{ hang: true }];
    const url = await listen(world);
    const { response, leave } = await send(url, { ...body, stream: true }, path);
    response.on("error", () => {});
    let text = "";
    response.on("data", (piece: Buffer) => (text += piece.toString()));
    const read = (): Record<string, unknown>[] =>
      [...text.matchAll(/^(?:data: )?(\{.*\})$/gm)].map(([, json]) => JSON.parse(json!));
    await eventually(() => expect(read().length).toBeGreaterThanOrEqual(5));
    const events = read();
    for (const event of events.slice(-3)) expect(event).toMatchObject(expected);
    const { choices = [] } = events.at(-1) as { choices?: object[] };
    for (const choice of choices)
      expect(choice).toEqual({ index: 0, delta: {}, logprobs: null, finish_reason: null });
    leave();
  });

  test("a client that does not read holds its generation back", async () => {
    const world = createWorld();
    const piece = { type: "content" as const, text: "x".repeat(64 * 1024) };
    let taken = 0;
    world.chat.script = Object.assign(
      Array.from({ length: 2000 }, () => piece),
      {
        [Symbol.iterator]: function* () {
          for (; taken < 2000; taken++) yield piece;
          yield finish("stop");
        },
      },
    );
    const url = await listen(world);
    const { response, leave } = await send(url, { ...hello, stream: true });
    response.pause();
    // Buffers on the way fill, and then nothing more is taken.
    for (let before = -1; before !== taken;) {
      before = taken;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(1000);
    leave();
  });

  /** A client that takes nothing of a stream of 128 MiB. @returns what ends it */
  async function stopReading(world: World): Promise<() => void> {
    const piece = { type: "content" as const, text: "x".repeat(64 * 1024) };
    world.chat.script = [...Array.from({ length: 2000 }, () => piece), finish("stop")];
    const { response, leave } = await send(await listen(world), { ...hello, stream: true });
    response.on("error", () => {});
    response.pause();
    return leave;
  }

  test.each([
    ["for too long", { stalledMs: 100 }],
    // The fake engine always says that two wait.
    ["while others wait for its place", { stalledMs: 600_000, crowdedStalledMs: 100 }],
  ])("a reader that takes nothing %s is given up, and its generation", async (_when, config) => {
    const world = createWorld({ config });
    const leave = await stopReading(world);
    await eventually(() => expect(world.chat.cancelledCount).toBe(1));
    leave();
  });

  test.each([
    ["five minutes", 0, 295, 301],
    ["20 to 40 seconds while others wait", 2, 15, 41],
  ])("its time is %s", async (_time, waiting, kept, over) => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    const world = createWorld({ waiting });
    const leave = await stopReading(world);
    // Buffers on the way fill, then the stream waits for its reader.
    await eventually(() => expect(vi.getTimerCount()).toBeGreaterThan(0));
    await new Promise((resolve) => setTimeout(resolve, 300));
    for (let second = 0; second < kept; second++) vi.advanceTimersByTime(1000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(world.chat.cancelledCount).toBe(0);
    for (let second = kept; second < over; second++) vi.advanceTimersByTime(1000);
    await eventually(() => expect(world.chat.cancelledCount).toBe(1));
    leave();
    vi.useRealTimers();
  });

  test("closing the server ends a stream with an error and frees the port", async () => {
    const world = createWorld();
    world.chat.script = [{ type: "content", text: "a" }, { hang: true }];
    const url = await listen(world);
    const { response } = await send(url, { ...hello, stream: true });
    let text = "";
    response.on("data", (piece: Buffer) => (text += piece.toString()));
    await eventually(() => expect(text).toContain('"content":"a"'));
    const ended = once(response, "end");
    await world.app.close();
    await ended;
    expect(text).toContain('"code":"engine_closed"');
    await expect(fetch(`${url}/health`)).rejects.toThrow();
  });

  test("closing the server does not wait for a connection that sends nothing", async () => {
    const world = createWorld();
    const { port } = new URL(await listen(world));
    const accepted = once(world.app.server, "connection");
    const silent = connect(Number(port), "127.0.0.1");
    await accepted;
    await Promise.all([once(silent, "close"), world.app.close()]);
  }, 20_000);

  test("closing the server does not wait for a connection whose answer comes meanwhile", async () => {
    const world = createWorld();
    const { port } = new URL(await listen(world));
    const body = JSON.stringify(hello);
    const asked = once(world.app.server, "request");
    const socket = connect(Number(port), "127.0.0.1");
    let text = "";
    socket.on("data", (piece: Buffer) => (text += piece.toString()));
    // A proxy may pass on the one header without the other: it is a plain request.
    const odd = "Upgrade: websocket";
    const type = "Content-Type: application/json";
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n${odd}\r\n${type}`;
    socket.write(`${head}\r\nContent-Length: ${body.length}\r\n\r\n`);
    await asked;
    const closed = world.app.close();
    await eventually(() => expect(world.app.server.listening).toBe(false));
    socket.write(body);
    await Promise.all([once(socket, "close"), closed]);
    expect(text).toMatch(/^HTTP\/1.1 /u);
  }, 20_000);

  test("closing the server does not cut off an answer that its client reads slowly", async () => {
    const world = createWorld({ config: { drainMs: 20_000 } });
    world.chat.script = [{ type: "content", text: "a".repeat(16 << 20) }, finish("stop")];
    const url = await listen(world);
    const { response } = await send(url, hello);
    let length = 0;
    response.once("data", () => response.pause());
    response.on("data", (piece: Buffer) => (length += piece.length));
    await eventually(() => expect(length).toBeGreaterThan(0));
    const closed = world.app.close();
    await eventually(async () => expect((await fetch(`${url}/v1/models`)).status).toBe(503));
    response.resume();
    await Promise.all([once(response, "end"), closed]);
    expect(length).toBeGreaterThan(16 << 20);
  }, 20_000);
});
