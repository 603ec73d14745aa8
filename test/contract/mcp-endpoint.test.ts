/** POST /mcp, as any client of the protocol may send it. What its tools answer is in the e2e lane. */

import { expect, test, vi } from "vitest";
import { createWorld } from "./fake-services.ts";

async function post(
  body: unknown,
  headers: object = {},
  { app }: Pick<ReturnType<typeof createWorld>, "app"> = createWorld(),
) {
  const response = await app.inject({
    method: "POST",
    url: "/mcp",
    payload: JSON.stringify(body),
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
  });
  const data = [...response.body.matchAll(/^data: (.+)$/gm)].map(([, text]) => JSON.parse(text!));
  return { status: response.statusCode, messages: data, json: () => response.json() };
}

const request = (method: string, params?: object) => ({ jsonrpc: "2.0", id: 7, method, params });

test.each([
  ["tools/call", undefined, "params: "],
  ["tools/call", {}, "params.name: "],
  ["tools/call", { name: "chat", arguments: 7 }, "params.arguments: "],
  ["tools/list", { cursor: 7 }, "params.cursor: "],
  ["initialize", { protocolVersion: "2025-11-25" }, "params.capabilities: "],
])("parameters of %s that are wrong are the client's fault, and named: %j", async (...given) => {
  const [method, params, beginning] = given;
  const { messages } = await post(request(method, params));
  expect(messages).toEqual([
    {
      jsonrpc: "2.0",
      id: 7,
      error: { code: -32602, message: expect.stringMatching(new RegExp(`^${beginning}`)) },
    },
  ]);
});

test("a tool that nobody has is named once, with the code once", async () => {
  const { messages } = await post(request("tools/call", { name: "nobody", arguments: {} }));
  expect(messages).toEqual([
    { jsonrpc: "2.0", id: 7, error: { code: -32602, message: "Unknown tool: nobody" } },
  ]);
});

test("one id for two requests that are refused: the first is answered, and the server goes on", async () => {
  const world = createWorld();
  const unhandled = vi.fn();
  process.on("unhandledRejection", unhandled);
  try {
    const twice = [request("tools/call"), request("tools/call")];
    const { status, messages } = await post(twice, {}, world);
    expect(status).toBe(200);
    expect(messages).toEqual([expect.objectContaining({ id: 7, error: expect.anything() })]);
    const { messages: after } = await post(request("ping"), {}, world);
    expect(after).toEqual([{ jsonrpc: "2.0", id: 7, result: {} }]);
    expect(unhandled).not.toHaveBeenCalled();
  } finally {
    process.off("unhandledRejection", unhandled);
  }
});

test("a method that is none of this server's is not found, beside one that is", async () => {
  const { messages } = await post([request("prompts/list"), { ...request("ping"), id: 8 }]);
  expect(messages).toHaveLength(2);
  expect(messages).toContainEqual({
    jsonrpc: "2.0",
    id: 7,
    error: { code: -32601, message: "Method not found" },
  });
  expect(messages).toContainEqual({ jsonrpc: "2.0", id: 8, result: {} });
});

test("a page of another site is refused, unless its origin is allowed", async () => {
  const origin = "https://app.example";
  const ping = request("ping");
  for (const headers of [{ origin }, { origin: "null" }, { "sec-fetch-site": "cross-site" }]) {
    const { status, json } = await post(ping, headers);
    expect(status).toBe(403);
    expect(json().error).toMatchObject({ code: "host_not_allowed", param: "origin" });
  }
  const own = { host: "localhost:8000", origin: "http://localhost:8000" };
  expect((await post(ping, own)).status).toBe(200);
  for (const allowed of [origin, "*"]) {
    const world = createWorld({ config: { corsOrigins: [allowed] } });
    expect((await post(ping, { origin }, world)).status).toBe(200);
  }
});
