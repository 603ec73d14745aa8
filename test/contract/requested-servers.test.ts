/** MCP servers of a request's own: connected for one response where the operator allows it. The servers are fakes. */

import { afterEach, expect, test } from "vitest";
import { FermataError } from "../../src/errors.ts";
import type { ServerConnector } from "../../src/tools/types.ts";
import { callEvents, fakeTool, finish } from "./fake-services.ts";
import { usage } from "./fake-figures.ts";
import { createResponsesWorld, type ResponsesWorld } from "./responses-world.ts";

type Asked = Parameters<ServerConnector["connect"]>[0];

class FakeConnector implements ServerConnector {
  readonly asked: Asked[] = [];
  closed: string[] = [];

  async connect(server: Asked): ReturnType<ServerConnector["connect"]> {
    this.asked.push(server);
    if (server.url.includes("10.0.0.1")) {
      const message = '"server_url" leads to a private address. Send another.';
      throw new FermataError("invalid_value", message, { param: "server_url" });
    }
    const tool = fakeTool(`${server.label}_look`, { content: "At nine.", isError: false });
    return {
      tools: [{ ...tool, server: server.label, originalName: "look" }],
      close: async () => void this.closed.push(server.label),
    };
  }
}

const docs = {
  type: "mcp",
  server_label: "docs",
  server_url: "https://docs.example/mcp",
  require_approval: "never",
};
let world: ResponsesWorld;
afterEach(() => world.close());

test("without the operator's leave: a 400 that names the URL", async () => {
  world = await createResponsesWorld();
  const { status, body } = await world.create({ input: "Hi", tools: [docs] });
  expect(status).toBe(400);
  expect(body.error.param).toBe("tools[0].server_url");
  expect(body.error.message).toContain("--allow-request-mcp");
});

test("its tools are listed, called and left at the end; its credentials go nowhere else", async () => {
  const connector = new FakeConnector();
  world = await createResponsesWorld({ requestedServers: connector });
  const call = { id: "call_1", name: "docs_look", arguments: "{}" };
  world.chat.script = [
    ...callEvents(call),
    { type: "hold", calls: [call], usage },
    { type: "content", text: "At nine." },
    finish("stop"),
  ];
  const secret = "s3cret";
  const tool = { ...docs, headers: { "x-team": secret }, authorization: secret };
  const { status, body } = await world.create({ input: "When?", tools: [tool] });
  expect(status).toBe(200);
  expect(connector.asked).toEqual([
    {
      label: "docs",
      url: "https://docs.example/mcp",
      headers: { "x-team": secret, authorization: `Bearer ${secret}` },
    },
  ]);
  expect(connector.closed).toEqual(["docs"]);
  expect(body.output).toMatchObject([
    { type: "mcp_list_tools", server_label: "docs", tools: [{ name: "look" }] },
    { type: "mcp_call", server_label: "docs", name: "look", output: "At nine.", error: null },
    { type: "message" },
  ]);
  const stored = await world.call("GET", `/v1/responses/${body.id}`);
  expect(JSON.stringify([body, stored.body, world.lines])).not.toContain(secret);
});

test("one that does not answer is the request's mistake, and the others are left", async () => {
  const connector = new FakeConnector();
  world = await createResponsesWorld({ requestedServers: connector });
  const inside = { ...docs, server_label: "inside", server_url: "https://10.0.0.1/mcp" };
  const { status, body } = await world.create({ input: "Hi", tools: [docs, inside] });
  expect(status).toBe(400);
  expect(body.error).toMatchObject({ param: "tools[1].server_url" });
  expect(body.error.message).toContain('"tools[1].server_url" leads to a private address');
  expect(connector.closed).toEqual(["docs"]);
  expect(world.chat.requests).toHaveLength(0);
});

test("what fails after the connection leaves it, too", async () => {
  const connector = new FakeConnector();
  world = await createResponsesWorld({ requestedServers: connector });
  const tool_choice = { type: "function", name: "none" };
  expect((await world.create({ input: "Hi", tools: [docs], tool_choice })).status).toBe(400);
  expect(connector.closed).toEqual(["docs"]);
});

test("its tools count as input", async () => {
  const connector = new FakeConnector();
  world = await createResponsesWorld({ requestedServers: connector });
  const reply = await world.call("POST", "/v1/responses/input_tokens", {
    input: "Hi",
    tools: [docs],
  });
  expect(reply.status).toBe(200);
  expect(world.chat.counted[0]!.tools.map(({ name }) => name)).toEqual(["docs_look"]);
  expect(connector.closed).toEqual(["docs"]);
});

test.each<[object, string]>([
  [{ server_url: 5 }, "tools[0].server_url"],
  [{ server_label: "a b" }, "tools[0].server_label"],
  [{ headers: [] }, "tools[0].headers"],
  [{ headers: { "x y": "1" } }, "tools[0].headers.x y"],
  [{ headers: { x: "1\r\ny: 2" } }, "tools[0].headers.x"],
  [{ authorization: 5 }, "tools[0].authorization"],
  [{ connector_id: "connector_dropbox" }, "tools[0].connector_id"],
])("%j is refused", async (change, param) => {
  world = await createResponsesWorld({ requestedServers: new FakeConnector() });
  const { status, body } = await world.create({ input: "Hi", tools: [{ ...docs, ...change }] });
  expect(status).toBe(400);
  expect(body.error.param).toBe(param);
});

test("five servers are one too many", async () => {
  world = await createResponsesWorld({ requestedServers: new FakeConnector() });
  const tools = Array.from({ length: 5 }, (_, index) => ({ ...docs, server_label: `s${index}` }));
  const { body } = await world.create({ input: "Hi", tools });
  expect(body.error.param).toBe("tools[4]");
});
