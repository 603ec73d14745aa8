/** Input items that change what follows: `additional_tools` and `configuration_update`. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Tool } from "../../src/tools/types.ts";
import { callEvents, finish, provider } from "./fake-services.ts";
import { createResponsesWorld, type ResponsesWorld } from "./responses-world.ts";

let world: ResponsesWorld;

beforeEach(async () => {
  world = await createResponsesWorld();
});
afterEach(() => world.close());

const user = (content: string) => ({ role: "user", content });
const tool = (name: string, description = "A tool.") => ({
  type: "function",
  name,
  description,
  parameters: { type: "object", properties: {} },
});
const added = (...tools: object[]) => ({ type: "additional_tools", role: "developer", tools });
const asked = () => world.chat.requests.at(-1)!;
const offered = () => asked().tools.map(({ name }) => name);

describe("additional_tools", () => {
  test("join the tools of the request", async () => {
    const input = [user("Hi"), added(tool("second"), { type: "custom", name: "third" })];
    const { status, body } = await world.create({ input, tools: [tool("first")] });
    expect(status).toBe(200);
    expect(offered()).toEqual(["first", "second", "third"]);
    expect(asked().messages).toEqual([user("Hi")]);
    expect(body.tools).toMatchObject([{ name: "first" }]);
  });

  test("are called under their names, with namespaces too", async () => {
    const call = { id: "call_1", name: "files__read", arguments: "{}" };
    world.chat.script = [...callEvents(call), finish("tool_calls", [call])];
    const space = { type: "namespace", name: "files", tools: [tool("read")] };
    const { body } = await world.create({ input: [added(space), user("Hi")] });
    expect(body.output).toMatchObject([
      { type: "function_call", name: "read", namespace: "files", call_id: "call_1" },
    ]);
  });

  test("stay for the turns that follow, and a later tool replaces one of its name", async () => {
    const { body: first } = await world.create({
      input: [added(tool("one"), tool("two")), user("Hi")],
    });
    const { body: second } = await world.create({
      input: [added(tool("two", "Newer.")), user("Go on")],
      previous_response_id: first.id,
    });
    expect(asked().tools).toMatchObject([
      { name: "one", description: "A tool." },
      { name: "two", description: "Newer." },
    ]);
    await world.create({ input: "And?", previous_response_id: second.id });
    expect(offered()).toEqual(["one", "two"]);
    const { body: kept } = await world.call(
      "GET",
      `/v1/responses/${first.id}/input_items?order=asc`,
    );
    expect(kept.data[0]).toMatchObject({
      type: "additional_tools",
      role: "developer",
      tools: [{ name: "one" }, { name: "two" }],
    });
    expect(kept.data[0].id).toMatch(/^at_/);
  });

  test("of a conversation hold for its responses", async () => {
    const { body: conversation } = await world.call("POST", "/v1/conversations", {
      items: [added(tool("one"))],
    });
    await world.create({ input: "Hi", conversation: conversation.id });
    expect(offered()).toEqual(["one"]);
  });

  test("may be named by tool_choice", async () => {
    const input = [added(tool("one"), tool("two")), user("Hi")];
    const choice = { type: "function", name: "two" };
    const { status } = await world.create({ input, tool_choice: choice });
    expect(status).toBe(200);
    expect(asked().guidance).toMatchObject({ toolChoice: "required", allowed: ["two"] });
  });

  test("are the request's tools, in place of those of all MCP servers", async () => {
    const list: Tool = {
      definition: { name: "list", parameters: { type: "object" } },
      server: "files",
      run: async () => ({ content: "", isError: false }),
    } as unknown as Tool;
    const served = await createResponsesWorld({ tools: provider(list) });
    try {
      await served.create({ input: "Hi" });
      await served.create({ input: [added(tool("one")), user("Hi")] });
      await served.create({
        input: [
          added({ type: "mcp", server_label: "files", require_approval: "never" }),
          user("Hi"),
        ],
      });
      const names = served.chat.requests.map(({ tools }) => tools.map(({ name }) => name));
      expect(names).toEqual([["list"], ["one"], ["list"]]);
    } finally {
      await served.close();
    }
  });

  test.each<[string, unknown, string]>([
    ["no list", undefined, "input[1].tools"],
    ["null", null, "input[1].tools"],
    ["a tool without a name", [{ type: "function" }], "input[1].tools[0].name"],
    ["two tools of one name", [tool("a"), { type: "custom", name: "a" }], "input[1].tools"],
    [
      "a server with credentials",
      [{ type: "mcp", server_label: "own", server_url: "https://example.com/mcp" }],
      "input[1].tools[0].server_url",
    ],
  ])("with %s are refused", async (_name, tools, param) => {
    const input = [user("Hi"), { type: "additional_tools", role: "developer", tools }];
    const { status, body } = await world.create({ input });
    expect([status, body.error.param]).toEqual([400, param]);
  });
});

test("a compacted conversation keeps its settings", async () => {
  world.chat.script = [{ type: "content", text: "Greetings." }, finish("stop")];
  const effort = { type: "configuration_update", reasoning: { effort: "low" } };
  const { status, body } = await world.call("POST", "/v1/responses/compact", {
    model: "m",
    input: [added(tool("one")), user("Hi"), effort],
  });
  expect(status).toBe(200);
  expect(body.output).toMatchObject([
    added({ name: "one" }),
    { type: "message", role: "user" },
    effort,
    { type: "compaction" },
  ]);
  await world.create({ input: [...body.output, user("Go on")] });
  expect(offered()).toEqual(["one"]);
  expect(asked().templateVariables).toEqual({ reasoning_effort: "low" });
});

describe("configuration_update", () => {
  const schema = { type: "object", properties: { city: { type: "string" } } };
  const format = { type: "json_schema", name: "city", schema, strict: true };
  const updated = (update: object) => ({ type: "configuration_update", ...update });
  const form = () => asked().guidance?.document;

  test("sets the effort until the next one", async () => {
    const { body: first } = await world.create({
      input: [user("Hi"), updated({ reasoning: { effort: "high" } })],
      reasoning: { effort: "low" },
    });
    expect(asked().templateVariables).toEqual({ reasoning_effort: "high" });
    const { body: second } = await world.create({
      input: "Go on",
      reasoning: { effort: "low" },
      previous_response_id: first.id,
    });
    expect(asked().templateVariables).toEqual({ reasoning_effort: "high" });
    expect(second.reasoning).toEqual({ effort: "high", summary: null });
    const input = [updated({ reasoning: { effort: "none" } }), user("And?")];
    const { body: third } = await world.create({ input, previous_response_id: second.id });
    expect(asked().templateVariables).toEqual({ reasoning_effort: "none" });
    expect(third.reasoning).toEqual({ effort: "none", summary: null });
  });

  test("sets the form until one of text", async () => {
    const { body: first } = await world.create({
      input: [user("Hi"), updated({ text: { format } })],
    });
    expect(form()).toMatchObject({ kind: "json_schema", schema, strict: true });
    const told = { format: { ...format, description: null } };
    expect(first.text).toEqual(told);
    const { body: second } = await world.create({ input: "Go on", previous_response_id: first.id });
    expect(form()).toMatchObject({ kind: "json_schema", schema, strict: true });
    expect(second.text).toEqual(told);
    const input = [updated({ text: { format: { type: "text" } } }), user("And?")];
    const { body: third } = await world.create({ input, previous_response_id: second.id });
    expect(form()).toBeUndefined();
    expect(third.text).toEqual({ format: { type: "text" } });
  });

  test("replaces the form of the request", async () => {
    const input = [user("Hi"), updated({ text: { format: { type: "text" } } })];
    await world.create({ input, text: { format } });
    expect(form()).toBeUndefined();
  });

  test("of text leaves a form that another field sets", async () => {
    const input = [user("Hi"), updated({ text: { format: { type: "text" } } })];
    await world.create({ input, guided_choice: ["a", "b"] });
    expect(form()).toEqual({ kind: "choice", choices: ["a", "b"] });
  });

  test("is accepted where input is counted", async () => {
    const input = [user("Hi"), updated({ reasoning: { effort: "high" } })];
    const { status } = await world.call("POST", "/v1/responses/input_tokens", { input });
    expect(status).toBe(200);
  });

  test.each<[string, object, object, string]>([
    ["nothing", {}, {}, "input[1]"],
    ["an unknown effort", { reasoning: { effort: "much" } }, {}, "input[1].reasoning.effort"],
    ["no format", { text: {} }, {}, "input[1].text.format"],
    ["a null format", { text: { format: null } }, {}, "input[1].text.format"],
    ["an unknown format", { text: { format: { type: "xml" } } }, {}, "input[1].text.format.type"],
    [
      "a form beside a grammar",
      { text: { format } },
      { guided_choice: ["a"] },
      "input[1].text.format",
    ],
  ])("with %s is refused", async (_name, update, more, param) => {
    const { status, body } = await world.create({ input: [user("Hi"), updated(update)], ...more });
    expect([status, body.error.param]).toEqual([400, param]);
  });
});
