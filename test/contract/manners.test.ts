/** How the server behaves towards browsers, broken clients and operators. */

import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { execFileSync } from "node:child_process";
import { connect, type Socket } from "node:net";
import { pino } from "pino";
import { afterEach, describe, expect, test } from "vitest";
import type { ServerConfig } from "../../src/server/services.ts";
import { createWorld, finish, post, type World } from "./fake-services.ts";
import { eventually } from "../support/eventually.ts";

const hello = { messages: [{ role: "user", content: "Hi" }] };
let open: World | undefined;

afterEach(async () => {
  await open?.app.close();
  open = undefined;
});

async function listen(world: World): Promise<{ url: string; port: number }> {
  open = world;
  const url = await world.app.listen({ port: 0, host: "127.0.0.1" });
  return { url, port: Number(new URL(url).port) };
}

/** Sends bytes as they are; resolves with all that came back. */
async function raw(port: number, bytes: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  socket.on("data", (piece) => (text += String(piece)));
  socket.on("error", () => {});
  socket.write(bytes);
  await once(socket, "close");
  return text;
}

test("one connection too many is closed; those that are open are served, and one that goes makes room", async () => {
  const { url, port } = await listen(createWorld({ config: { maxConnections: 2 } }));
  const sockets = [connect(port, "127.0.0.1"), connect(port, "127.0.0.1")];
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  const third = connect(port, "127.0.0.1");
  await new Promise((resolve) => third.on("error", resolve).on("close", resolve));
  sockets[0]!.write("GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
  const [reply] = await once(sockets[0]!, "data");
  expect(String(reply)).toMatch(/^HTTP\/1\.1 200 /);
  sockets[1]!.destroy();
  await eventually(async () => expect((await fetch(`${url}/health`)).status).toBe(200));
  sockets[0]!.destroy();
});

/** Both ends of each connection are this process's. */
const openFiles = execFileSync("sh", ["-c", "ulimit -n"], { encoding: "utf8" });

test("2,048 clients may be connected; one more is closed, and the log says so", async ({
  skip,
}) => {
  if (Number(openFiles) < 4500) skip(`needs 4,500 open files, may have ${openFiles}`);
  let log = "";
  const logger = pino({ level: "warn" }, { write: (line) => (log += line) });
  const { port } = await listen(createWorld({ config: { logger } }));
  const sockets: Socket[] = [];
  // No more at once than a port's backlog takes.
  while (sockets.length < 2048) {
    const some = Array.from({ length: 128 }, () => connect(port, "127.0.0.1"));
    await Promise.all(some.map((socket) => once(socket, "connect")));
    sockets.push(...some);
  }
  expect(log).toBe("");
  const last = connect(port, "127.0.0.1");
  await new Promise((resolve) => last.on("error", resolve).on("close", resolve));
  expect(log).toContain("too many connections");
  expect(sockets.filter((socket) => socket.closed)).toEqual([]);
  for (const socket of sockets) socket.destroy();
});

test("a connection counts once, however often its requests offer another protocol", async () => {
  const { url, port } = await listen(createWorld({ config: { maxConnections: 2 } }));
  const socket = connect(port, "127.0.0.1");
  const lines = ["GET /health HTTP/1.1", "host: localhost", "connection: Upgrade", "upgrade: h2c"];
  for (let count = 0; count < 5; count++) {
    socket.write(`${lines.join("\r\n")}\r\n\r\n`);
    const [reply] = await once(socket, "data");
    expect(String(reply)).toMatch(/^HTTP\/1\.1 200 /);
  }
  expect((await fetch(`${url}/health`)).status).toBe(200);
  socket.destroy();
});

describe("cross-origin requests", () => {
  const ask = (world: World, origin: string, method: "GET" | "OPTIONS" = "GET") =>
    world.app.inject({
      method,
      url: "/v1/models",
      headers: {
        origin,
        ...(method === "OPTIONS"
          ? {
              "access-control-request-method": "POST",
              "access-control-request-headers": "authorization, content-type",
            }
          : {}),
      },
    });

  test("none by default", async () => {
    const world = createWorld();
    const response = await ask(world, "https://app.example");
    expect(response.headers).not.toHaveProperty("access-control-allow-origin");
    expect((await ask(world, "https://app.example", "OPTIONS")).statusCode).toBe(405);
  });

  test("named origins only, without a key for the preflight", async () => {
    const config = { corsOrigins: ["https://app.example"], apiKeys: ["k1"] };
    const world = createWorld({ config });
    const preflight = await ask(world, "https://app.example", "OPTIONS");
    expect(preflight.statusCode).toBe(204);
    expect(preflight.headers).toMatchObject({
      "access-control-allow-origin": "https://app.example",
      "access-control-allow-headers": "authorization, content-type",
      "access-control-allow-methods": expect.stringContaining("POST"),
      vary: "origin",
    });
    // An error is readable too.
    const refused = await ask(world, "https://app.example");
    expect(refused.statusCode).toBe(401);
    expect(refused.headers["access-control-allow-origin"]).toBe("https://app.example");
    const other = await ask(world, "https://evil.example");
    expect(other.headers).not.toHaveProperty("access-control-allow-origin");
  });

  test("a stream carries the headers; * is all", async () => {
    const world = createWorld({ config: { corsOrigins: ["*"] } });
    const response = await post(world.app, { ...hello, stream: true }, { origin: "null" });
    expect(response.headers["access-control-allow-origin"]).toBe("*");
    const exposed = response.headers["access-control-expose-headers"];
    for (const name of ["x-request-id", "x-fermata-replica", "mcp-session-id"])
      expect(exposed).toContain(name);
  });
});

describe("names that a web page could have", () => {
  const ask = async (host: string, config: Partial<ServerConfig> = {}) => {
    const { port } = await listen(createWorld({ config }));
    const reply = await raw(
      port,
      `GET /v1/models HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`,
    );
    return reply.slice(9, 12);
  };

  test.each([
    "localhost",
    "LOCALHOST:8000",
    "127.0.0.1:8000",
    "[::1]:8000",
    "app.localhost",
    "fermata",
    "host.docker.internal:8000",
    "",
  ])("%s is answered", async (host) => {
    expect(await ask(host)).toBe("200");
  });

  test.each(["evil.example", "evil.example:8000", "localhost.evil.example", "evil.example."])(
    "%s is not, where no key is asked for",
    async (host) => {
      expect(await ask(host)).toBe("403");
    },
  );

  test("is not, wherever the server is reached", async () => {
    // No socket, so no loopback: as by a container's published port.
    const { app } = createWorld();
    const answer = await app.inject({ url: "/v1/models", headers: { host: "evil.example" } });
    expect(answer.statusCode).toBe(403);
    expect(answer.json().error).toMatchObject({ code: "host_not_allowed", param: "host" });
    expect(
      (await app.inject({ url: "/v1/models", headers: { host: "10.1.2.3" } })).statusCode,
    ).toBe(200);
  });

  test("with keys, or for an allowed origin, every name will do", async () => {
    expect(await ask("chat.example", { apiKeys: ["k"] })).toBe("401");
    await open!.app.close();
    expect(await ask("chat.example", { corsOrigins: ["https://chat.example"] })).toBe("200");
    await open!.app.close();
    // Every page may call, but none becomes the server's own.
    expect(await ask("chat.example", { corsOrigins: ["*"] })).toBe("403");
  });
});

describe("what is too large or no request", () => {
  test("headers", async () => {
    const { port } = await listen(createWorld());
    const reply = await raw(
      port,
      `GET /health HTTP/1.1\r\nhost: x\r\nx-long: ${"a".repeat(40_000)}\r\n\r\n`,
    );
    expect(reply).toMatch(/^HTTP\/1\.1 431 /);
    expect(JSON.parse(reply.split("\r\n\r\n")[1]!).error).toMatchObject({
      code: "headers_too_large",
      param: "headers",
      message: expect.stringContaining("32 KiB"),
    });
  });

  test("a body", async () => {
    const { url } = await listen(createWorld());
    const request = httpRequest(`${url}/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", "content-length": 5 * 2 ** 20 },
    });
    request.on("error", () => {});
    request.write("{");
    const [response] = await once(request, "response");
    expect(response.statusCode).toBe(413);
    let text = "";
    for await (const piece of response) text += String(piece);
    expect(JSON.parse(text).error).toMatchObject({
      type: "request_too_large",
      message: expect.stringContaining("4 MiB"),
    });
    request.destroy();
  });

  const chunked = "transfer-encoding: chunked";
  const mebibyte = `100000\r\n${" ".repeat(2 ** 20)}\r\n`;
  const many = `${mebibyte.repeat(12)}0\r\n\r\n`;
  const plain = " ".repeat(12 * 2 ** 20);
  const told = `content-length: ${plain.length}`;
  const bodies = { many, plain };
  const last = "connection: close";
  test.each<[string, string[], keyof typeof bodies, number, ServerConfig["apiKeys"]]>([
    ["too large", [chunked], "many", 413, []],
    ["too large, on its last connection", [chunked, last], "many", 413, []],
    ["of a length too large", [told], "plain", 413, []],
    ["of a length too large, on its last connection", [told, last], "plain", 413, []],
    ["of nobody", [told, last], "plain", 401, ["key"]],
  ])("a client that sends all of a body first gets its answer: %s", async (...given) => {
    const [, headers, which, status, apiKeys] = given;
    const body = bodies[which];
    const { port } = await listen(createWorld({ config: { apiKeys } }));
    const socket = connect(port, "127.0.0.1");
    const failed = new Promise<Error>((resolve) => socket.once("error", resolve));
    const closed = once(socket, "close");
    const head = ["POST /v1/messages HTTP/1.1", "host: x", "content-type: application/json"];
    const sent = new Promise<unknown>((resolve) =>
      socket.write(`${[...head, ...headers].join("\r\n")}\r\n\r\n${body}`, resolve),
    );
    expect(await Promise.race([sent, failed])).toBeFalsy();
    let text = "";
    socket.on("data", (piece) => (text += String(piece)));
    await eventually(() => expect(text).toMatch(/"request_id":"[^"]*"}$/));
    expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    const isLast = headers.includes(last);
    expect(/\r\nconnection: close\r\n/i.test(text)).toBe(isLast);
    // The connection serves on where the client has not asked for its end.
    text = "";
    if (!isLast) socket.write("GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    await closed;
    expect(text.slice(0, 13)).toBe(isLast ? "" : "HTTP/1.1 200 ");
  });

  test("a client whose refused body has no end is left", async () => {
    const { port } = await listen(createWorld());
    const socket = connect(port, "127.0.0.1");
    let isOpen = true;
    socket.on("error", () => {}).on("close", () => (isOpen = false));
    socket.resume();
    socket.write(
      `POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${chunked}\r\n\r\n`,
    );
    for (let count = 0; isOpen && count < 100; count++)
      await new Promise((resolve) => socket.write(mebibyte, resolve));
    await eventually(() => expect(isOpen).toBe(false));
  });

  test("bodies that are on their way, all together", async () => {
    const { url } = await listen(createWorld({ config: { unfinishedBodyBytes: 2 ** 20 } }));
    const start = (bytes: number) => {
      const request = httpRequest(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", "content-length": 2 ** 21 },
      });
      request.on("error", () => {});
      request.write(" ".repeat(bytes));
      return request;
    };
    // Whichever comes last is one too many.
    const slow = [1, 2, 3, 4].map(() => start(300_000));
    const [response] = await Promise.race(slow.map((request) => once(request, "response")));
    expect(response.statusCode).toBe(429);
    expect(response.headers["retry-after"]).toBe("1");
    // A short one is answered meanwhile.
    const short = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(hello),
    });
    expect(short.status).toBe(200);
    // Who goes makes room.
    for (const request of slow) request.destroy();
    const body = JSON.stringify({ ...hello, metadata: {} }).padEnd(900_000);
    const send = () =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
    await eventually(async () => expect((await send()).status).toBe(200));
  });

  test.each([
    ["nonsense\r\n\r\n", "invalid_request"],
    ["GET /%zz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", "invalid_request"],
    [
      `GET /v1/models/${"a".repeat(300)} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`,
      "not_found",
    ],
  ])("%#", async (bytes, code) => {
    const { port } = await listen(createWorld());
    const reply = await raw(port, bytes);
    expect(reply).toMatch(/^HTTP\/1\.1 40[04] /);
    expect(JSON.parse(reply.split("\r\n\r\n")[1]!).error).toMatchObject({
      code,
      message: expect.any(String),
    });
  });
});

test("one line a request, without query and contents", async () => {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: "info" }, { write: (line) => void lines.push(JSON.parse(line)) });
  const world = createWorld({ config: { logger } });
  await world.app.inject({
    method: "POST",
    url: "/v1/chat/completions?key=hunter2",
    payload: { messages: [{ role: "user", content: "hunter2" }] },
    headers: { "x-request-id": "trace-7", authorization: "Bearer hunter2" },
  });
  await world.app.inject({ url: "/health" });
  const access = lines.filter(({ msg }) => msg === "request");
  expect(access).toEqual([
    expect.objectContaining({
      reqId: "trace-7",
      method: "POST",
      path: "/v1/chat/completions",
      status: 200,
      milliseconds: expect.any(Number),
    }),
  ]);
  expect(JSON.stringify(lines)).not.toContain("hunter2");
});

describe("closing", () => {
  async function streaming(drainMs: number) {
    const world = createWorld({ config: { drainMs } });
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => (end = resolve));
    world.chat.generate = ({ signal }) => {
      async function* events() {
        yield { type: "content" as const, text: "a" };
        await Promise.race([ended, once(signal!, "abort")]);
        yield { type: "content" as const, text: "b" };
        yield finish(signal!.aborted ? "cancelled" : "stop");
      }
      const iterator = events();
      return {
        [Symbol.asyncIterator]: () => iterator,
        extend: () => {},
        resume: async () => false,
        release: () => {},
        cancel: () => {},
      };
    };
    const { url } = await listen(world);
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...hello, stream: true }),
    });
    let text = "";
    const read = (async () => {
      for await (const piece of response.body!) text += new TextDecoder().decode(piece);
    })();
    await eventually(() => expect(text).toContain('"content":"a"'));
    return { world, url, end, read, text: () => text };
  }

  test("running answers end, new requests get 503 in the API's shape", async () => {
    const { world, url, end, read, text } = await streaming(10_000);
    const closed = world.app.close();
    await eventually(async () => {
      for (const [path, type] of [
        ["/v1/chat/completions", "server_error"],
        ["/v1/messages", "overloaded_error"],
      ] as const) {
        const response = await fetch(url + path, { method: "POST" });
        expect(response.status).toBe(503);
        expect(response.headers.get("retry-after")).toBe("1");
        expect(await response.json()).toMatchObject({ error: { code: "engine_closed", type } });
      }
    });
    end();
    await Promise.all([closed, read]);
    expect(text()).toMatch(/"content":"b"[^]*"finish_reason":"stop"[^]*data: \[DONE\]\n\n$/);
  });

  test("health, readiness and metrics answer while it drains", async () => {
    const { world, url, end, read } = await streaming(10_000);
    const closed = world.app.close();
    await eventually(async () => expect((await fetch(`${url}/v1/models`)).status).toBe(503));
    const states = ["/health", "/ready", "/metrics"].map(
      async (path) => (await fetch(url + path)).status,
    );
    expect(await Promise.all(states)).toEqual([200, 503, 200]);
    end();
    await Promise.all([closed, read]);
  });

  test("one that does not end in time gets an error event", async () => {
    const { world, read, text } = await streaming(50);
    await Promise.all([world.app.close(), read]);
    expect(text()).toContain('"code":"engine_closed"');
    expect(text()).not.toContain("[DONE]");
  });
});
