/** A fake of a remote MCP server whose connections stay open and bring nothing. */

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Silence = "no head" | "half a body" | "events without an answer" | "everything";

export interface HalfOpenServer {
  url: string;
  /** Null: it answers. */
  silence: Silence | null;
  /** Calls that came. */
  calls: number;
  /** Of answers to calls that are open still. */
  open: Set<ServerResponse>;
  close(): Promise<void>;
}

const inputSchema = {
  type: "object",
  properties: { location: { type: "string" } },
  required: ["location"],
};
const results: Record<string, object> = {
  initialize: {
    protocolVersion: "2025-06-18",
    capabilities: { tools: {} },
    serverInfo: { name: "far", version: "1" },
  },
  "tools/list": {
    tools: [{ name: "get_weather", description: "Get the weather of a place", inputSchema }],
  },
  "tools/call": { content: [{ type: "text", text: "Sunny, 21 degrees." }] },
  ping: {},
};

/** @param port of one that was closed, to be there again */
export async function startHalfOpen(port = 0): Promise<HalfOpenServer> {
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk) => (text += String(chunk)));
    request.on("end", () => {
      if (far.silence === "everything") return;
      if (request.method !== "POST") return void response.writeHead(405).end();
      const { id, method } = JSON.parse(text) as { id?: number; method: string };
      if (id === undefined) return void response.writeHead(202).end();
      if (method === "tools/call") far.calls += 1;
      if (method === "tools/call" && far.silence !== null) return keepOpen(response, far.silence);
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result: results[method] }));
    });
  });
  const keepOpen = (response: ServerResponse, silence: Silence): void => {
    far.open.add(response);
    response.on("close", () => far.open.delete(response));
    if (silence === "half a body") {
      response.writeHead(200, { "content-type": "application/json" }).write('{"jsonrpc":');
    } else if (silence === "events without an answer") {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(": here\n\n");
      const heart = setInterval(() => response.write(": here\n\n"), 100);
      response.on("close", () => clearInterval(heart));
    }
  };
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const far: HalfOpenServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    silence: null,
    calls: 0,
    open: new Set(),
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  return far;
}
