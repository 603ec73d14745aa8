/** Fermata as an MCP server: what a client hears while its call runs. */

import { expect, test } from "vitest";
import { SseParser } from "../../../src/client/index.ts";
import { McpEndpoint, type PublishedTools } from "../../../src/mcp/server/endpoint.ts";

/** The messages of a call whose client wants progress, until its answer. `heard` hears each as it comes. */
async function callTool(
  call: PublishedTools["call"],
  heard: (message: string) => void,
): Promise<string[]> {
  const inputSchema = { type: "object" } as const;
  const tools: PublishedTools = {
    list: () => [{ name: "team", description: "", inputSchema }],
    call,
  };
  const params = { name: "team", arguments: {}, _meta: { progressToken: 1 } };
  const headers = new Headers({
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2025-06-18",
  });
  const post = {
    url: "http://localhost/mcp",
    headers,
    body: { jsonrpc: "2.0", id: 1, method: "tools/call", params },
    owner: "o",
    signal: new AbortController().signal,
  };
  const response = await new McpEndpoint("0").answer(post, tools);
  const parser = new SseParser();
  const decoder = new TextDecoder();
  const messages: string[] = [];
  for await (const bytes of response.body!) {
    for (const { data } of parser.push(decoder.decode(bytes, { stream: true }))) {
      const message = JSON.parse(data).params?.message;
      if (message === undefined) continue;
      messages.push(message);
      heard(message);
    }
  }
  return messages;
}

test("of reports that come faster than a person reads, the first and the last are sent while the call runs", async () => {
  let finish = (): void => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const messages = await callTool(
    async (_name, _args, { report }) => {
      for (let round = 0; round < 100; round++) {
        report("writer works");
        report("reader works");
      }
      await finished;
      return { text: "done", isError: false };
    },
    (message) => {
      if (message === "reader works") finish();
    },
  );
  expect(messages).toEqual(["writer works", "reader works"]);
});
