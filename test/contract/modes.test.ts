/** The matrix of design and README, with the notes under it. */

import { describe, expect, test } from "vitest";
import {
  callEvents,
  createWorld,
  fakeTool,
  finish,
  post,
  provider,
  sseEvents,
  type ScriptStep,
} from "./fake-services.ts";

const hello = { messages: [{ role: "user", content: "Which files?" }] };
const given = [{ type: "function", function: { name: "get_weather" } }];
const listFiles = fakeTool("list_files", { content: "a.txt", isError: false });
const call = { id: "call_1", name: "list_files", arguments: "{}" };
const held: ScriptStep[] = [
  { type: "content", text: "Let me see. " },
  ...callEvents(call),
  {
    type: "hold",
    calls: [call],
    usage: {
      promptTokens: 1,
      cachedTokens: 0,
      resumedTokens: 0,
      prefilledTokens: 1,
      recomputedTokens: 0,
      generatedTokens: 1,
    },
  },
  { type: "reasoning", text: "One." },
  { type: "content", text: "There is a.txt." },
  finish("stop"),
];

describe("mode by tools in the request and MCP servers", () => {
  const cases: [name: string, body: object, mcp: boolean, toolMode: string, tools: string[]][] = [
    ["no tools, no MCP", {}, false, "none", []],
    ["tools null is no tools", { tools: null }, false, "none", []],
    ["tools, no MCP", { tools: given }, false, "external", ["get_weather"]],
    ["tools and MCP", { tools: given }, true, "external", ["get_weather"]],
    ["no tools, MCP", {}, true, "internal", ["list_files"]],
    ["tools null, MCP", { tools: null }, true, "internal", ["list_files"]],
    ["empty tools count as given", { tools: [] }, true, "none", []],
    ["only hosted tools count as given", { tools: [{ type: "web_search" }] }, true, "none", []],
    ["tool_choice auto", { tool_choice: "auto" }, true, "internal", ["list_files"]],
    ["tool_choice none, MCP", { tool_choice: "none" }, true, "none", []],
    ["tool_choice none, tools", { tools: given, tool_choice: "none" }, true, "none", []],
  ];
  test.each(cases)("%s", async (_name, body, mcp, toolMode, tools) => {
    const { app, chat } = createWorld(mcp ? { tools: provider(listFiles) } : {});
    expect((await post(app, { ...hello, ...body })).statusCode).toBe(200);
    expect(chat.requests[0]!.toolMode).toBe(toolMode);
    expect(chat.requests[0]!.tools.map(({ name }) => name)).toEqual(tools);
  });
});

describe("internal mode", () => {
  test("streams content and reasoning of all rounds, and nothing of the calls", async () => {
    const { app, chat } = createWorld({ tools: provider(listFiles) });
    chat.script = held;
    const response = await post(app, {
      ...hello,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = sseEvents(response.body).slice(0, -1) as {
      choices: { delta: object; finish_reason: string | null }[];
      usage: { prompt_tokens: number } | null;
    }[];
    expect(
      chunks.flatMap(({ choices }) =>
        choices.map(({ delta, finish_reason }) => [delta, finish_reason]),
      ),
    ).toEqual([
      [{ role: "assistant", content: "" }, null],
      [{ content: "Let me see. " }, null],
      [{ reasoning_content: "One." }, null],
      [{ content: "There is a.txt." }, null],
      [{}, "stop"],
    ]);
    expect(chunks.at(-1)!.usage).toMatchObject({ prompt_tokens: 25, completion_tokens: 7 });
    expect(chat.outputs).toEqual([[{ callId: "call_1", name: "list_files", content: "a.txt" }]]);
  });

  test("one body, without tool_calls", async () => {
    const { app, chat } = createWorld({ tools: provider(listFiles) });
    chat.script = held;
    const { choices } = (await post(app, hello)).json();
    expect(choices[0].message).toEqual({
      role: "assistant",
      content: "Let me see. There is a.txt.",
      refusal: null,
      reasoning_content: "One.",
    });
    expect(choices[0].finish_reason).toBe("stop");
  });

  test("tool calls are counted by server, tool and outcome", async () => {
    const { app, chat } = createWorld({ tools: provider(listFiles) });
    chat.script = held;
    await post(app, hello);
    const text = (await app.inject({ url: "/metrics" })).body;
    expect(text).toContain(
      'fermata_tool_calls_total{server="files",tool="list_files",outcome="ok"} 1',
    );
    expect(text).toContain("fermata_tool_duration_seconds_count 1");
    expect(text).toContain("fermata_resume_ttft_seconds_count 1");
    expect(text).toContain("fermata_ttft_seconds_count 1");
  });
});

test("without tools and MCP a marker is text", async () => {
  const { app, chat } = createWorld();
  chat.script = [{ type: "content", text: "<tool_call>{}</tool_call>" }, finish("stop")];
  const { choices } = (await post(app, hello)).json();
  expect(choices[0]).toMatchObject({
    message: { content: "<tool_call>{}</tool_call>" },
    finish_reason: "stop",
  });
});
