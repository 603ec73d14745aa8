/** Against a server of the older HTTP with SSE that sends what nobody asked for. Only the end of its stream ends the session. */

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { McpHost } from "../../../src/mcp/host.ts";
import type { ToolResult } from "../../../src/tools/types.ts";
import { toolContext } from "../../support/tool-context.ts";
import { eventually } from "../../support/eventually.ts";

/** The stream of the newest session, and how many there were. */
let stream: ServerResponse | undefined;
let sessions = 0;
/** A call of these tools is answered with this status and nothing else. */
const refusals: Record<string, number> = { too_large: 413, broken: 500 };

const server = createServer((request, response) => {
  if (request.method === "GET") {
    sessions += 1;
    stream = response;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("event: endpoint\ndata: /messages\n\n");
    return;
  }
  let text = "";
  request.on("data", (chunk) => (text += chunk));
  request.on("end", () => {
    const { id, method, params } = JSON.parse(text);
    const status = method === "tools/call" ? (refusals[params.name] ?? 202) : 202;
    response.writeHead(status).end();
    if (status === 202 && id !== undefined) send({ id, result: resultOf(method, params) });
    // As the protocol's own Python library does.
    if (method === "notifications/cancelled")
      send({ id: params.requestId, error: { code: 0, message: "Request cancelled" } });
  });
});

function resultOf(method: string, params: { protocolVersion: string }): object {
  if (method === "initialize")
    return {
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "x", version: "1" },
    };
  if (method !== "tools/list") return { content: [{ type: "text", text: "hi" }] };
  const names = ["echo", ...Object.keys(refusals)];
  return { tools: names.map((name) => ({ name, inputSchema: { type: "object" } })) };
}

function send(message: object): void {
  stream?.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
}

let host: McpHost;
let lines: string[] = [];
beforeEach(async () => {
  [sessions, lines] = [0, []];
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`;
  const note = (fields: object, message: string): void =>
    void lines.push(`${message} ${JSON.stringify(fields)}`);
  host = new McpHost([{ id: "old", url, transport: "sse", headers: {} }], {
    log: { debug() {}, info: note, warn: note },
    version: "0",
    reconnectDelayMs: 20,
    startPatienceMs: 30_000,
  });
  await host.start();
});
afterEach(async () => {
  await host.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function call(name: string): Promise<ToolResult> {
  const tool = host.tools().find(({ originalName }) => originalName === name);
  return await tool!.call({}, toolContext());
}

test.each<[name: string, message: object, said: RegExp]>([
  [
    "an answer to a call that is over",
    { id: 999, error: { code: 0, message: "Request cancelled" } },
    /MCP server misbehaves .*unknown message ID/,
  ],
  [
    "progress of a call that is over",
    { method: "notifications/progress", params: { progressToken: 999, progress: 1 } },
    /MCP server misbehaves .*unknown token/,
  ],
  ["something that is no message", { answer: 42 }, /MCP server misbehaves .*ZodError/],
])("%s is a complaint, and the session goes on", async (_name, message, said) => {
  send(message);
  await eventually(() => expect(lines.join("\n")).toMatch(said));
  expect(await call("echo")).toEqual({ content: "hi", isError: false });
  expect(sessions).toBe(1);
});

test.each(Object.keys(refusals))("a call that is refused (%s) fails alone", async (name) => {
  const { content, isError } = await call(name);
  expect(isError).toBe(true);
  expect(content).toContain(`HTTP ${refusals[name]}`);
  expect(await call("echo")).toEqual({ content: "hi", isError: false });
  expect(sessions).toBe(1);
});

test("a stream that ends is a session that ends, and another is begun", async () => {
  stream!.end();
  await eventually(() => expect(sessions).toBe(2));
  await eventually(async () => expect((await call("echo")).content).toBe("hi"));
});
