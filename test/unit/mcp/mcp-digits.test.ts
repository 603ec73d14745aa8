/** Arguments that JavaScript's numbers do not hold, on their way to a server that is written in another language. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, expect, onTestFinished, test } from "vitest";
import type { McpServerConfig } from "../../../src/mcp/settings.ts";
import { runToolRound } from "../../../src/tools/tool-round.ts";
import { closeHosts, start } from "./mcp-host-world.ts";

afterEach(closeHosts);

/** A server whose only tool says what it was sent. Its text runs in a process of its own, too. */
function answer(line: string): string {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return "";
  const results: Record<string, object> = {
    initialize: {
      protocolVersion: params?.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "raw", version: "1" },
    },
    "tools/list": { tools: [{ name: "raw", inputSchema: { type: "object" } }] },
    "tools/call": { content: [{ type: "text", text: line }] },
  };
  return JSON.stringify({ jsonrpc: "2.0", id, result: results[method] ?? {} });
}

async function sent(server: McpServerConfig, args: string): Promise<string> {
  const host = await start([server]);
  const turn = {
    calls: [{ id: "call_1", name: "raw", arguments: args }],
    finishReason: "tool_calls",
  };
  const round = runToolRound(turn, host.tools(), { signal: new AbortController().signal });
  for (;;) {
    const { done, value } = await round.next();
    if (done === true) return value![0]!.content;
  }
}

const args =
  '{"id": 12345678901234567891, "in": {"ids": [9007199254740993, 1, 1.50]}, "text": "9007199254740993"}';
const written =
  '"arguments":{"id":12345678901234567891,"in":{"ids":[9007199254740993,1,1.5]},"text":"9007199254740993"}';

test("whole numbers keep their digits over standard input", async () => {
  const script = `require("node:readline").createInterface({ input: process.stdin })
    .on("line", (line) => console.log((${String(answer)})(line)))`;
  const server = { id: "raw", command: process.execPath, args: ["-e", script], env: {} };
  expect(await sent(server, args)).toContain(written);
});

test("whole numbers keep their digits over HTTP", async () => {
  const http = createServer((request, response) => {
    void text(request).then((line) => {
      if (request.method !== "POST") return response.writeHead(405).end();
      const body = answer(line);
      response.writeHead(body === "" ? 202 : 200, { "content-type": "application/json" });
      return response.end(body);
    });
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
  onTestFinished(() => {
    http.closeAllConnections();
    http.close();
  });
  expect(await sent({ id: "raw", url, transport: "http", headers: {} }, args)).toContain(written);
});
