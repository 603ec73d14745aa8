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
      [{ role: "assistant", content: null }, null],
      [{ content: "Let me see. " }, null],
      [{ reasoning_content: "One." }, null],
      [{ content: "\n\nThere is a.txt." }, null],
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
      content: "Let me see. \n\nThere is a.txt.",
      refusal: null,
      reasoning_content: "One.",
    });
    expect(choices[0].finish_reason).toBe("stop");
  });

  test.each<[string, string[], string[], string]>([
    ["a blank line is between them", ["I look."], ["It rains."], "I look.\n\nIt rains."],
    [
      "breaks that the model wrote count",
      ["I look.\n"],
      ["\n", "It rains."],
      "I look.\n\nIt rains.",
    ],
    ["more than two stay", ["I look.\n\n\n"], ["It rains."], "I look.\n\n\nIt rains."],
    ["a round without text adds nothing", [], ["It rains."], "It rains."],
    ["a blank round is none", ["\n"], ["It rains."], "\nIt rains."],
    ["an empty answer adds nothing", ["I look."], ["\n"], "I look."],
  ])("texts of rounds, on each wire: %s", async (_title, before, after, joined) => {
    const texts = (all: string[]): ScriptStep[] => all.map((text) => ({ type: "content", text }));
    const hold = held.find((step) => "type" in step && step.type === "hold")!;
    const script = [...texts(before), ...callEvents(call), hold, ...texts(after), finish("stop")];
    const { app, chat } = createWorld({ tools: provider(listFiles) });
    const send = async (url: string, body: object) => {
      chat.script = script;
      return await app.inject({ method: "POST", url, payload: { ...hello, ...body } });
    };
    const completions = "/v1/chat/completions";
    expect((await send(completions, {})).json().choices[0].message.content).toBe(joined);
    const chunks = sseEvents((await send(completions, { stream: true })).body).slice(0, -1);
    const deltas = (chunks as { choices: [{ delta: { content?: string } }] }[]).map(
      ({ choices }) => choices[0].delta.content ?? "",
    );
    expect(deltas.join("")).toBe(joined);
    const message = (await send("/v1/messages", { max_tokens: 100 })).json();
    expect(message.content).toEqual([{ type: "text", text: joined, citations: null }]);
    const events = (await send("/v1/messages", { max_tokens: 100, stream: true })).body;
    const pieces = [...events.matchAll(/^data: (.*"text_delta".*)$/gm)].map(
      ([, data]) => (JSON.parse(data!) as { delta: { text: string } }).delta.text,
    );
    expect(pieces.join("")).toBe(joined);
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
