/** A request that comes before a slow MCP server is ready waits for it; what is missing then is told. */

import { afterEach, expect, test } from "vitest";
import { McpHost } from "../../src/mcp/host.ts";
import { fileURLToPath } from "node:url";
import { createWorld, fakeTool, provider } from "./fake-services.ts";

const header = "x-fermata-missing-servers";
const messages = [{ role: "user", content: "Hi" }];
const fixture = fileURLToPath(new URL("../fixtures/mcp/misbehaving.mjs", import.meta.url));
let host: McpHost | null = null;
afterEach(() => host?.close());

async function slowHost(startMs: number, connectTimeoutMs: number): Promise<McpHost> {
  const log = { debug: () => {}, info: () => {}, warn: () => {} };
  const args = [fixture, String(startMs)];
  const servers = [{ id: "slow", command: process.execPath, args, env: {} }];
  host = new McpHost(servers, { log, version: "0", connectTimeoutMs, startPatienceMs: 1 });
  await host.start();
  expect(host.tools()).toEqual([]);
  return host;
}

test("a server that becomes ready is waited for", async () => {
  const world = createWorld({ tools: await slowHost(300, 60_000) });
  const reply = await world.app.inject({
    method: "POST",
    url: "/v1/chat/completions",
    payload: { messages },
  });
  expect(reply.statusCode).toBe(200);
  expect(reply.headers[header]).toBeUndefined();
  expect(world.chat.requests[0]?.tools.length).toBeGreaterThan(0);
});

test("a server that does not is waited for up to the limit, then the answer comes without it", async () => {
  const world = createWorld({ tools: await slowHost(600_000, 200) });
  const reply = await world.app.inject({
    method: "POST",
    url: "/v1/chat/completions",
    payload: { messages },
  });
  expect(reply.statusCode).toBe(200);
  expect(reply.headers[header]).toBe("slow");
  expect(world.chat.requests[0]?.tools).toEqual([]);
});

test.each([
  ["/v1/chat/completions", { messages }, true],
  ["/v1/messages", { messages, max_tokens: 9 }, true],
  ["/v1/responses", { input: "Hi" }, true],
  ["/v1/chat/completions", { messages, tools: [] }, false],
  ["/v1/chat/completions", { messages, tool_choice: "none" }, false],
  // Its clients always send a list.
  ["/api/chat", { messages, tools: [] }, true],
])("%s %j: told %s", async (url, payload, isTold) => {
  let waits = 0;
  const files = provider(fakeTool("read", { content: "", isError: false }));
  const missing = async () => {
    waits += 1;
    return ["näive"];
  };
  const world = createWorld({ tools: { ...files, missing } });
  const reply = await world.app.inject({ method: "POST", url, payload });
  expect(reply.statusCode).toBe(200);
  expect(reply.headers[header]).toBe(isTold ? "n%C3%A4ive" : undefined);
  expect(waits).toBe(isTold ? 1 : 0);
});

test("a conversation's run tells it too", async () => {
  const files = provider(fakeTool("read", { content: "", isError: false }));
  const world = createWorld({ tools: { ...files, missing: async () => ["slow"] } });
  const post = (url: string, payload: object) => world.app.inject({ method: "POST", url, payload });
  const { id } = (await post("/api/conversations", {})).json();
  const reply = await post(`/api/conversations/${id}/runs`, { message: "Hi" });
  expect(reply.statusCode).toBe(202);
  expect(reply.headers[header]).toBe("slow");
});
