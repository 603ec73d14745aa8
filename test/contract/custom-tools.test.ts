/** Tools of type `custom`: the model writes a string in JSON, the client gets the text. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ChatEvent } from "../../src/chat/types.ts";
import { callEvents, finish } from "./fake-services.ts";
import {
  createResponsesWorld,
  toolCallLines,
  type Event,
  type ResponsesWorld,
} from "./responses-world.ts";

const patch = { type: "custom", name: "patch", description: "Changes a file." };
let world: ResponsesWorld;

beforeEach(async () => {
  world = await createResponsesWorld();
});
afterEach(() => world.close());

/** A call whose arguments come in these pieces. */
function calls(pieces: readonly string[]): ChatEvent[] {
  const call = { id: "call_1", name: "patch", arguments: pieces.join("") };
  return [...callEvents(call, 0, pieces), finish("tool_calls", [call])];
}

function inputOf(events: readonly Event[]): string {
  return events
    .filter(({ type }) => type === "response.custom_tool_call_input.delta")
    .map(({ delta }) => delta)
    .join("");
}

test("the model sees a function with one string", async () => {
  await world.create({ input: "Hi", tools: [patch] });
  expect(world.chat.requests[0]!.tools).toEqual([
    {
      name: "patch",
      description: "Changes a file.",
      parameters: {
        type: "object",
        properties: { input: { type: "string" } },
        required: ["input"],
        additionalProperties: false,
      },
    },
  ]);
});

test("a regular expression binds the input, a grammar is told", async () => {
  const formats = [
    { type: "grammar", syntax: "regex", definition: "[a-z]+|\\d" },
    { type: "grammar", syntax: "lark", definition: "start: WORD" },
  ];
  const tools = formats.map((format, index) => ({ ...patch, name: `patch${index}`, format }));
  const { body } = await world.create({ input: "Hi", tools });
  const [regex, lark] = world.chat.requests[0]!.tools;
  expect(regex!.parameters).toMatchObject({
    properties: { input: { pattern: "^(?:[a-z]+|\\d)$" } },
  });
  expect(lark!.description).toBe(
    "Changes a file.\n\nThe input follows this grammar, in Lark's syntax:\nstart: WORD",
  );
  expect(body.tools).toMatchObject(tools);
});

describe("the input is streamed as text", () => {
  const inputs: [string, string[], string][] = [
    [
      "in any pieces",
      ['{"in', 'put": "*** Be', "gin\\", "n\\", 'u00e9 \\"x', '\\""}'],
      '*** Begin\né "x"',
    ],
    ["that is empty", ['{"input":""}'], ""],
    ["with a pair of surrogates that is cut", ['{"input":"\\ud83c', '\\udf0a!"}'], "🌊!"],
    ["of arguments with more in them", ['{"input":"a","more":"b"}'], "a"],
    ["of arguments in another order", ['{"more":1,"input":"a"}'], "a"],
    ["of arguments that are no such object", ["[1]"], "[1]"],
    ["of arguments without any input", ['{"text":"a"}'], '{"text":"a"}'],
  ];

  test.each(inputs)("%s", async (_name, pieces, input) => {
    world.chat.script = calls(pieces);
    const events = await world.streamed({ input: "Hi", tools: [patch] });
    expect(inputOf(events)).toBe(input);
    expect(events.find(({ type }) => type.endsWith("input.done"))).toMatchObject({ input });
    expect(events.at(-1)).toMatchObject({
      type: "response.completed",
      response: {
        output: [
          {
            type: "custom_tool_call",
            call_id: "call_1",
            name: "patch",
            input,
            status: "completed",
          },
        ],
      },
    });
    // No delta ends within a character.
    for (const { delta } of events) expect(String(delta ?? "")).not.toMatch(/[\ud800-\udbff]$/u);
  });
});

test("the call and its output come back as the function's", async () => {
  world.chat.script = calls(['{"input":"a\\nb"}']);
  const first = await world.create({ input: "Hi", tools: [patch] });
  const [call] = first.body.output;
  const output = { type: "custom_tool_call_output", call_id: call.call_id, output: "Done." };
  const expected = [
    { role: "user", content: "Hi" },
    {
      role: "assistant",
      toolCalls: [{ id: "call_1", name: "patch", arguments: '{"input":"a\\nb"}' }],
    },
    { role: "tool", toolCallId: "call_1", content: "Done." },
  ];
  world.chat.script = [{ type: "content", text: "Ok." }, finish("stop")];
  for (const body of [
    { previous_response_id: first.body.id, input: [output] },
    { input: [{ role: "user", content: "Hi" }, call, output] },
  ]) {
    expect((await world.create({ ...body, tools: [patch] })).status).toBe(200);
    expect(world.chat.requests.at(-1)!.messages).toMatchObject(expected);
  }
  const stray = await world.create({ input: [output], tools: [patch] });
  expect(stray.body.error).toMatchObject({ param: "input[0].call_id" });
  expect(stray.body.error.message).toContain("custom_tool_call");
});

test("it is logged by its length, and held like a function's", async () => {
  world.chat.script = [
    ...calls(['{"input":"secret"}']).slice(0, -1),
    { type: "hold", calls: [{ id: "call_1", name: "patch", arguments: "{}" }], usage: noUsage },
    { type: "content", text: "Ok." },
    finish("stop"),
  ];
  const streaming = world.streamed({ input: "Hi", tools: [patch], fermata: { tools: "held" } });
  await until(() => world.lines.some(({ msg }) => msg === "TOOL_CALL completed"));
  const id = world.lines.find(({ msg }) => msg === "TOOL_CALL added")!["response"] as string;
  const output = [{ type: "output_text", text: "Done." }];
  const posted = { tool_call_id: "call_1", output };
  expect((await world.call("POST", `/v1/responses/${id}/tool_outputs`, posted)).status).toBe(200);
  expect((await streaming).at(-1)).toMatchObject({ response: { status: "completed" } });
  expect(toolCallLines(world.lines)).toMatchObject([
    { msg: "TOOL_CALL added", name: "patch" },
    { msg: "TOOL_CALL delta", args_len: 6 },
    { msg: "TOOL_CALL completed" },
    { msg: "TOOL_CALL done", args_len: 6 },
  ]);
  expect(JSON.stringify(world.lines)).not.toContain("secret");
  world.chat.script = [{ type: "content", text: "Ok." }, finish("stop")];
  const next = await world.create({ previous_response_id: id, input: "And?", tools: [patch] });
  expect(next.status).toBe(200);
  const kept = await world.call("GET", `/v1/responses/${next.body.id}/input_items?order=asc`);
  expect(kept.body.data.map(({ type }: { type: string }) => type)).toEqual([
    "message",
    "custom_tool_call",
    "custom_tool_call_output",
    "message",
    "message",
  ]);
});

const noUsage = {
  promptTokens: 0,
  cachedTokens: 0,
  resumedTokens: 0,
  prefilledTokens: 0,
  recomputedTokens: 0,
  generatedTokens: 0,
};

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

test.each([
  [{ name: "a b" }, "tools[0].name"],
  [{ name: "a", format: 1 }, "tools[0].format"],
  [{ name: "a", format: { type: "grammar" } }, "tools[0].format.definition"],
  [{ name: "a", format: { type: "grammar", definition: "a" } }, "tools[0].format.syntax"],
])("%j is refused", async (tool, param) => {
  const { status, body } = await world.create({
    input: "Hi",
    tools: [{ type: "custom", ...tool }],
  });
  expect(status).toBe(400);
  expect(body.error.param).toBe(param);
});
