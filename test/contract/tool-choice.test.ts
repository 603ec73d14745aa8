/** `tool_choice` of responses and chats: the client's names of tools, and the model's. */

import { afterEach, expect, test } from "vitest";
import { fakeTool, provider } from "./fake-services.ts";
import { createResponsesWorld, type Json, type ResponsesWorld } from "./responses-world.ts";

let world: ResponsesWorld;

afterEach(() => world.close());

const result = { content: "", isError: false };
const wiki = (name: string) => ({
  ...fakeTool(`deepwiki_${name}`, result, "deepwiki"),
  originalName: name,
});
const tools = [
  { type: "function", name: "get_weather" },
  { type: "custom", name: "shell" },
  { type: "namespace", name: "crm", tools: [{ type: "function", name: "find" }] },
  { type: "mcp", server_label: "deepwiki", require_approval: "never" },
  { type: "mcp", server_label: "files", allowed_tools: [] },
  { type: "image_generation" },
];
const weather = { type: "function", name: "get_weather" };

async function asked(tool_choice: object, path = "/v1/responses", body: object = { tools }) {
  const read = fakeTool("read", result);
  world = await createResponsesWorld({ tools: provider(wiki("ask"), wiki("search"), read) });
  const input = path === "/v1/responses" ? { input: "Hi" } : {};
  const reply = await world.call("POST", path, { ...input, ...body, tool_choice });
  return { reply, guidance: world.chat.requests[0]?.guidance };
}

function allowed(...entries: object[]): object {
  return { type: "allowed_tools", mode: "auto", tools: entries };
}

test.each<[object, object]>([
  [
    allowed(weather, { type: "mcp", server_label: "deepwiki" }, { type: "image_generation" }),
    { allowed: ["get_weather", "deepwiki_ask", "deepwiki_search"], toolChoice: "auto" },
  ],
  [allowed({ type: "mcp", server_label: "deepwiki", name: "ask" }), { allowed: ["deepwiki_ask"] }],
  [allowed({ type: "mcp", server_label: "files" }, weather), { allowed: ["get_weather"] }],
  [allowed({ type: "function", name: "find" }), { allowed: ["crm__find"] }],
  [allowed({ type: "function", name: "crm__find" }), { allowed: ["crm__find"] }],
  [
    allowed({ type: "custom", name: "shell" }, { name: "find" }),
    { allowed: ["shell", "crm__find"] },
  ],
  [allowed({ type: "image_generation" }), { allowed: [] }],
  [
    { type: "mcp", server_label: "deepwiki", name: "ask" },
    { allowed: ["deepwiki_ask"], toolChoice: "required", parallel: false },
  ],
  [
    { type: "mcp", server_label: "deepwiki" },
    { allowed: ["deepwiki_ask", "deepwiki_search"], toolChoice: "required", parallel: true },
  ],
  [
    { type: "function", name: "find" },
    { allowed: ["crm__find"], toolChoice: "required" },
  ],
])("%j is %j to the model", async (choice, told) => {
  const { reply, guidance } = await asked(choice);
  expect(reply.body.error ?? null).toBeNull();
  expect(guidance).toMatchObject(told);
  expect(reply.body.tool_choice).toEqual(choice);
});

test("a type that is skipped is told of in the log, once", async () => {
  await asked(allowed(weather, { type: "image_generation" }));
  const skipped = world.lines.filter((line: Json) =>
    JSON.stringify(line).includes("tool_choice.tools[].type=image_generation"),
  );
  expect(skipped).toHaveLength(1);
});

test.each<[object, string]>([
  [allowed({ type: "mcp", server_label: "wiki" }), "wiki/*"],
  [allowed({ type: "mcp", server_label: "deepwiki", name: "tell" }), "deepwiki/tell"],
  [{ type: "mcp", server_label: "files", name: "read" }, "files/read"],
  [{ type: "function", name: "search" }, "search"],
  [{ type: "allowed_tools", mode: "required", tools: [{ type: "web_search" }] }, "no tool"],
])("%j is refused: %s", async (choice, said) => {
  const { reply } = await asked(choice);
  expect(reply.status).toBe(400);
  expect(reply.body.error).toMatchObject({ code: "invalid_value", param: "tool_choice" });
  expect(reply.body.error.message).toContain(said);
});

test("without tools in the request, those of the configured servers can be chosen", async () => {
  const choice = allowed({ type: "mcp", server_label: "deepwiki", name: "search" });
  expect((await asked(choice, "/v1/responses", {})).guidance).toMatchObject({
    allowed: ["deepwiki_search"],
  });
});

test("allowed_tools of a chat skips what its tools skip", async () => {
  const own = { type: "function", function: { name: "get_weather" } };
  const hosted = [{ type: "web_search" }, { type: "code_interpreter" }];
  const body = { messages: [{ role: "user", content: "Hi" }], tools: [own, ...hosted] };
  const allowed_tools = { mode: "auto", tools: [own, ...hosted] };
  const choice = { type: "allowed_tools", allowed_tools };
  const { reply, guidance } = await asked(choice, "/v1/chat/completions", body);
  expect(reply.status).toBe(200);
  expect(guidance).toMatchObject({ allowed: ["get_weather"] });
});
