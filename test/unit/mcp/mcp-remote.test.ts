/** Against an MCP server over HTTP that is written by hand, so that it can fail as no library would. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { McpServerConfig } from "../../../src/mcp/settings.ts";
import { McpHost, type McpHostOptions } from "../../../src/mcp/host.ts";
import { connectForRequest } from "../../../src/mcp/request-server.ts";
import { isPublicAddress } from "../../../src/mcp/transport/guarded-fetch.ts";
import type { ToolResult } from "../../../src/tools/types.ts";
import { toolContext } from "../../support/tool-context.ts";
import { impatientFetch } from "../../support/impatient-fetch.ts";
import { eventually } from "../../support/eventually.ts";

type Call = (id: number, response: ServerResponse, progressToken: unknown) => void;

const calls: Record<string, Call> = {
  echo: (id, response) => json(response, { id, result: textResult("hi") }),
  /** The stream ends, and nothing was in it. */
  cut: (_id, response) => {
    events(response);
    response.end(": bye\n\n");
  },
  /** The socket is gone in the middle of an event. */
  torn: (_id, response) => {
    events(response);
    response.write('data: {"jsonrpc":');
    setTimeout(() => response.destroy(), 20);
  },
  /** The socket is gone in the middle of the answer. */
  half: (_id, response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
    response.write('{"jsonrpc":', () => response.destroy());
  },
  huge: (id, response) => json(response, { id, result: textResult("x".repeat(20 * 2 ** 20)) }),
  huge_event: (id, response) => {
    events(response);
    const message = { jsonrpc: "2.0", id, result: textResult("x".repeat(20 * 2 ** 20)) };
    response.end(`data: ${JSON.stringify(message)}\n\n`);
  },
  broken: (_id, response) => response.writeHead(500).end("x".repeat(100_000)),
  page: (_id, response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>"),
  refused: (_id, response) => response.writeHead(400).end("Bad arguments"),
  unauthorized: (_id, response) => response.writeHead(401).end("Bad arguments"),
  forbidden: (_id, response) => response.writeHead(403).end("Bad arguments"),
  away: (_id, response) => response.writeHead(307, { location: "http://127.0.0.2:9/" }).end(),
  hang: () => {},
  /** It tells of its progress until the test lets it answer. */
  busy: (id, response, progressToken) => {
    events(response);
    let progress = 0;
    const timer = setInterval(() => {
      const params = { progressToken, progress: ++progress };
      const message = { jsonrpc: "2.0", method: "notifications/progress", params };
      response.write(`data: ${JSON.stringify(message)}\n\n`);
    }, 50);
    held.push(() => {
      clearInterval(timer);
      const message = { jsonrpc: "2.0", id, result: textResult("hi") };
      response.end(`data: ${JSON.stringify(message)}\n\n`);
    });
  },
  /** They answer when the test says so. */
  late: (id, response) => void held.push(() => calls["echo"]!(id, response, "")),
  late_event: (id, response) => {
    events(response);
    response.flushHeaders();
    const message = { jsonrpc: "2.0", id, result: textResult("hi") };
    held.push(() => response.end(`data: ${JSON.stringify(message)}\n\n`));
  },
};
let held: (() => void)[] = [];

let seen: {
  method: string;
  headers: IncomingMessage["headers"];
  body: { method?: string; params?: unknown };
}[] = [];
let isSessionKnown = true;
let unknownSession = 404;
let mode: "http" | "streaming" | "not-allowed" | "initialized" | "one-at-a-time" = "http";
/** Of each page of its list. */
let nextCursor: string | undefined;
/** Of what the server says by itself, which it does not. */
let streams: ServerResponse[] = [];
const server = createServer((request, response) => {
  let text = "";
  request.on("data", (chunk) => (text += chunk));
  request.on("end", () => {
    const body = text === "" ? {} : JSON.parse(text);
    seen.push({ method: request.method!, headers: request.headers, body });
    if (request.headers["x-key"] !== "k") return void response.writeHead(401).end();
    if (request.method === "GET" && mode === "streaming") {
      events(response);
      response.write("retry: 10\n\n");
      return void streams.push(response);
    }
    if (request.method !== "POST") return void response.writeHead(405).end();
    if (mode === "not-allowed") return void response.writeHead(404).end();
    if (mode === "initialized") return void response.writeHead(400).end("Already initialized");
    if (mode === "one-at-a-time" && body.method !== "tools/call") return;
    if (!isSessionKnown && body.method !== "initialize")
      return void response.writeHead(unknownSession).end();
    if (body.method === "initialize") {
      isSessionKnown = true;
      response.setHeader("mcp-session-id", "s1");
      const { protocolVersion } = body.params;
      const result = {
        protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "x", version: "1" },
      };
      return void json(response, { id: body.id, result });
    }
    if (body.method === "tools/list") {
      const tools = Object.keys(calls).map((name) => ({ name, inputSchema: { type: "object" } }));
      return void json(response, { id: body.id, result: { tools, nextCursor } });
    }
    if (body.method === "tools/call")
      return void calls[body.params.name]!(body.id, response, body.params._meta?.progressToken);
    if (body.id === undefined) return void response.writeHead(202).end();
    json(response, { id: body.id, result: {} });
  });
});

function json(response: ServerResponse, message: object): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", ...message }));
}
function events(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
}
function textResult(text: string): object {
  return { content: [{ type: "text", text }] };
}

let url = "";
let hosts: McpHost[] = [];
let lines: { message: string; [field: string]: unknown }[] = [];
beforeEach(async () => {
  [seen, lines, isSessionKnown, mode] = [[], [], true, "http"];
  [held, streams, nextCursor] = [[], [], undefined];
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
});
afterEach(async () => {
  await Promise.all(hosts.map((host) => host.close()));
  hosts = [];
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const log = {
  debug: (fields: object, message: string) =>
    void lines.push({ ...fields, message: `debug: ${message}` }),
  info: (fields: object, message: string) => void lines.push({ ...fields, message }),
  warn: (fields: object, message: string) => void lines.push({ ...fields, message }),
};

async function start(
  headers: Record<string, string> = { "x-key": "k" },
  options: Partial<McpHostOptions> = {},
): Promise<McpHost> {
  const config: McpServerConfig = { id: "far", url, transport: "auto", headers };
  const host = new McpHost([config], {
    log,
    version: "0",
    reconnectDelayMs: 20,
    startPatienceMs: 30_000,
    ...options,
  });
  hosts.push(host);
  await host.start();
  return host;
}

async function call(host: McpHost, name: string, signal?: AbortSignal): Promise<ToolResult> {
  const tool = host.tools().find(({ originalName }) => originalName === name);
  expect(tool, name).toBeDefined();
  return await tool!.call({}, toolContext(signal));
}

test("headers go with every request", async () => {
  const host = await start({ "x-key": "k", authorization: "Bearer t" });
  expect(await call(host, "echo")).toEqual({ content: "hi", isError: false });
  await host.close();
  expect(seen.length).toBeGreaterThan(4);
  for (const { headers } of seen) expect(headers["authorization"]).toBe("Bearer t");
  // The session is ended.
  expect(seen.at(-1)).toMatchObject({ method: "DELETE", headers: { "mcp-session-id": "s1" } });
});

test("a server that wants another key does not start, and the log says why", async () => {
  const host = await start({});
  expect(host.servers()).toMatchObject([{ state: "restarting", tools: [] }]);
  expect(JSON.stringify(lines)).toMatch(
    /MCP server \\"far\\" \(http:\/\/127.0.0.1:\d+\) did not start: Streamable HTTP error/,
  );
});

test.each<[name: string, problem: RegExp]>([
  ["cut", /the server closed the connection before it answered/],
  ["torn", /the server closed the connection before it answered/],
  ["huge", /its answer of \d+ MiB is larger than the limit of 16 MiB/],
  ["huge_event", /its answer of \d+ MiB is larger than the limit of 16 MiB/],
  ["broken", /^Error: Streamable HTTP error: Error POSTing to endpoint: x{100,300}/],
  ["refused", /Bad arguments/],
  ["page", /Unexpected content type: text\/html/],
  ["away", /Redirect to http:\/\/127.0.0.2:9\/ not followed/],
])("%s: the call fails at once, and others go on", async (name, problem) => {
  const host = await start();
  const { content, isError } = await call(host, name);
  expect(isError).toBe(true);
  expect(content).toMatch(problem);
  expect(content.length).toBeLessThan(400);
  expect(await call(host, "echo")).toEqual({ content: "hi", isError: false });
});

test.each(["http", "sse"] as const)(
  "%s: a redirect carries no header elsewhere",
  async (transport) => {
    const elsewhere: IncomingMessage["headers"][] = [];
    const other = createServer((request, response) => {
      elsewhere.push(request.headers);
      response.writeHead(404).end();
    });
    const door = createServer((_request, response) => {
      const { port } = other.address() as AddressInfo;
      response.writeHead(307, { location: `http://127.0.0.1:${port}/mcp` }).end();
    });
    for (const one of [other, door])
      await new Promise<void>((resolve) => one.listen(0, "127.0.0.1", resolve));
    const headers = { "x-key": "k", authorization: "Bearer t" };
    const { port } = door.address() as AddressInfo;
    const host = new McpHost(
      [{ id: "far", url: `http://127.0.0.1:${port}/mcp`, transport, headers }],
      {
        log,
        version: "0",
        startPatienceMs: 30_000,
      },
    );
    hosts.push(host);
    await host.start();
    expect(host.servers()).toMatchObject([{ state: "restarting", tools: [] }]);
    expect(elsewhere).toEqual([]);
    for (const one of [other, door]) {
      one.closeAllConnections();
      await new Promise((resolve) => one.close(resolve));
    }
  },
);

test("a call that is given up is cancelled at the server", async () => {
  const host = await start({ "x-key": "k" }, { toolTimeoutMs: 60 });
  expect((await call(host, "hang")).content).toMatch(/did not answer within/);
  await eventually(() =>
    expect(seen.map(({ body }) => body.method)).toContain("notifications/cancelled"),
  );
});

test.each(["late", "late_event"])("%s: a call takes longer than fetch would wait", async (name) => {
  const host = await start();
  const fetching = await impatientFetch();
  const answer = call(host, name);
  await eventually(() => expect(held).toHaveLength(1));
  await fetching.hasGivenUp();
  held[0]!();
  expect(await answer).toEqual({ content: "hi", isError: false });
  expect(lines.map(({ message }) => message)).toEqual(["MCP server ready"]);
  await fetching.restore();
});

test("an idle stream that ends is no complaint", async () => {
  mode = "streaming";
  const host = await start();
  await eventually(() => expect(streams).toHaveLength(1));
  streams[0]!.destroy();
  await eventually(() => expect(streams).toHaveLength(2));
  expect((await call(host, "echo")).content).toBe("hi");
  expect(lines.map(({ message }) => message)).toEqual([
    "MCP server ready",
    "debug: MCP server's stream broke off",
  ]);
});

test.each([404, 400, 401, 403])(
  "a session that the server forgot (%i) is begun anew",
  async (status) => {
    const host = await start();
    [isSessionKnown, unknownSession] = [false, status];
    expect(await call(host, "echo")).toMatchObject({ isError: true });
    await eventually(async () => expect((await call(host, "echo")).content).toBe("hi"));
    expect([...new Set(lines.map(({ message }) => message))]).toEqual([
      "MCP server ready",
      "MCP server misbehaves",
      "MCP server ended, starting it again",
      "MCP server is back",
    ]);
  },
);

test("a server that is gone in the middle of an answer is begun anew", async () => {
  const host = await start();
  expect((await call(host, "half")).content).toMatch(/terminated/);
  await eventually(async () => expect((await call(host, "echo")).content).toBe("hi"));
  expect(lines.map(({ message }) => message)).toContain("MCP server is back");
});

test.each(["refused", "unauthorized", "forbidden"])(
  "a call that is %s ends no session that the server knows",
  async (name) => {
    const host = await start();
    expect((await call(host, name)).content).toMatch(/Bad arguments/);
    await eventually(() => expect(seen.map(({ body }) => body.method)).toContain("ping"));
    expect((await call(host, "echo")).content).toBe("hi");
    expect(seen.filter(({ body }) => body.method === "initialize").length).toBe(1);
  },
);

test("a server that does one thing at a time is not taken for dead while a call runs", async () => {
  const host = await start(
    { "x-key": "k" },
    { refreshMs: 50, connectTimeoutMs: 200, pingTimeoutMs: 50 },
  );
  const answer = call(host, "late");
  await eventually(() => expect(held).toHaveLength(1));
  mode = "one-at-a-time";
  const refreshed = (): number =>
    lines.filter(({ message }) => message === "MCP tool list not refreshed").length;
  await eventually(() => expect(refreshed()).toBeGreaterThan(1));
  held[0]!();
  expect(await answer).toEqual({ content: "hi", isError: false });
  expect(seen.map(({ body }) => body.method)).not.toContain("ping");
});

test("a call that times out behind an earlier one does not end the server", async () => {
  const host = await start({ "x-key": "k" }, { toolTimeoutMs: 300, pingTimeoutMs: 50 });
  const answer = call(host, "busy");
  await eventually(() => expect(held).toHaveLength(1));
  expect((await call(host, "hang")).content).toMatch(/did not answer within/);
  expect((await call(host, "echo")).content).toBe("hi");
  held[0]!();
  expect(await answer).toEqual({ content: "hi", isError: false });
  expect(seen.map(({ body }) => body.method)).not.toContain("ping");
  expect((await call(host, "hang")).content).toMatch(/did not answer within/);
  await eventually(() => expect(seen.map(({ body }) => body.method)).toContain("ping"));
});

test.each(["", "again"])("a list that leads to itself (%j) is read once more", async (cursor) => {
  nextCursor = cursor;
  const host = await start();
  expect(host.tools()).toHaveLength(Object.keys(calls).length);
  expect(seen.filter(({ body }) => body.method === "tools/list")).toHaveLength(2);
  expect(lines.map(({ problem }) => problem)).toContain(
    "tool list: it does not end, a page leads to one that was read before",
  );
});

test("a server that is gone is tried again, its tools stay offered", async () => {
  const host = await start();
  const { port } = server.address() as AddressInfo;
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  expect(await call(host, "echo")).toMatchObject({ isError: true });
  expect(host.tools().length).toBe(Object.keys(calls).length);
  expect((await call(host, "echo")).content).toMatch(/"far" is being started again/);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  await eventually(async () => expect((await call(host, "echo")).content).toBe("hi"));
});

test.each([
  ["not-allowed", "did not start"],
  ["initialized", "Already initialized"],
] as const)("%s: the older form is tried, and the refusal is told", async (refusal, reason) => {
  mode = refusal;
  const host = await start();
  expect(host.servers()[0]).toMatchObject({ state: "restarting" });
  expect(seen.map(({ method }) => method)).toContain("GET");
  expect(JSON.stringify(lines)).toContain(reason);
});

test("a server that a request names is reached if its address is public, and gets its own key only", async () => {
  const request = { label: "own", url, headers: { "x-key": "k" } };
  const options = { log, version: "0" };
  const { signal } = new AbortController();
  const isAllowed = (address: string): boolean => address === "127.0.0.1";
  const rules = { isAllowed, allowHttp: true, resolve: async () => [] };
  const remote = await connectForRequest(request, options, signal, rules);
  const echo = remote.tools.find(({ definition }) => definition.name === "own_echo")!;
  expect(echo.readOnly).toBe(false);
  expect((await echo.call({}, toolContext())).content).toBe("hi");
  await remote.close();
  await expect(connectForRequest(request, options, signal)).rejects.toMatchObject({
    code: "invalid_value",
  });
  const resolve = async () => [{ address: "127.0.0.1", family: 4 }];
  const named = { ...request, url: "http://rebind.test/mcp" };
  const strict = { isAllowed: isPublicAddress, allowHttp: true, resolve };
  await expect(connectForRequest(named, options, signal, strict)).rejects.toMatchObject({
    code: "invalid_value",
    message: expect.stringContaining("private address"),
  });
});
