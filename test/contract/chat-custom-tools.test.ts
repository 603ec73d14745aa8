/** Tools of type `custom` in chat completions: the model writes a string in JSON, the client gets the text. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ChatEvent } from "../../src/chat/types.ts";
import { callEvents, createWorld, finish, type World } from "./fake-services.ts";

const patch = { type: "custom", custom: { name: "patch", description: "Changes a file." } };
const find = { type: "function", function: { name: "find" } };
const messages = [{ role: "user", content: "Hi" }];
let world: World;

beforeEach(() => {
  world = createWorld();
});
afterEach(() => world.app.close());

async function post(body: object, url = "/v1/chat/completions") {
  const reply = await world.app.inject({ method: "POST", url, payload: { messages, ...body } });
  return { status: reply.statusCode, body: reply.json() };
}

async function deltas(body: object) {
  const payload = { messages, stream: true, ...body };
  const url = "/v1/chat/completions";
  const reply = await world.app.inject({ method: "POST", url, payload });
  return [...reply.body.matchAll(/^data: (\{.*)$/gm)]
    .map(([, chunk]) => JSON.parse(chunk!).choices[0])
    .flatMap((choice) => choice.delta.tool_calls ?? []);
}

/** A call whose arguments come in these pieces. */
function calls(pieces: readonly string[], name = "patch", index = 0): ChatEvent[] {
  const call = { id: `call_${index}`, name, arguments: pieces.join("") };
  return callEvents(call, index, pieces);
}

const asked = () => world.chat.requests.at(-1)!;

test("the model sees a function with one string, beside other functions", async () => {
  await post({ tools: [find, patch] });
  expect(asked().tools).toMatchObject([
    { name: "find" },
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

test("a regular expression binds the input", async () => {
  const format = { type: "grammar", grammar: { syntax: "regex", definition: "[a-z]+" } };
  await post({ tools: [{ type: "custom", custom: { name: "patch", format } }] });
  expect(asked().tools[0]!.parameters).toMatchObject({
    properties: { input: { pattern: "^(?:[a-z]+)$" } },
  });
});

test("flags of a regular expression stay at its beginning", async () => {
  const format = { type: "grammar", grammar: { syntax: "regex", definition: "(?i)a|b" } };
  await post({ tools: [{ type: "custom", custom: { name: "patch", format } }] });
  expect(asked().tools[0]!.parameters).toMatchObject({
    properties: { input: { pattern: "^(?i)(?:a|b)$" } },
  });
});

test.each([
  ["(", "is not a regular expression"],
  ["a)|(b", "is not a regular expression"],
  ["(?<a>b)\\k<a>", "refers back to a group"],
  ["(?x)a b", "is not a regular expression"],
])("a regular expression that no mask can hold is refused: %s", async (definition, problem) => {
  const format = { type: "grammar", grammar: { syntax: "regex", definition } };
  const { status, body } = await post({
    tools: [{ type: "custom", custom: { name: "a", format } }],
  });
  expect([status, body.error.param]).toEqual([400, "tools[0].custom.format.grammar.definition"]);
  expect(body.error.message).toContain(problem);
});

test.each(["a^b", "[]", "a[^\\s\\S]|$b", "(?!)", "(?=a)b", "x{2}(?<!x)"])(
  "a regular expression that no text fits is refused: %s",
  async (definition) => {
    const format = { type: "grammar", grammar: { syntax: "regex", definition } };
    const { status, body } = await post({
      tools: [{ type: "custom", custom: { name: "a", format } }],
    });
    expect([status, body.error.param]).toEqual([400, "tools[0].custom.format.grammar.definition"]);
    expect(body.error.message).toContain("matches no text");
  },
);

test.each(["", "^$", "a*[]*", "(?!b)", "[]|c"])(
  "one that some text fits is taken: %s",
  async (definition) => {
    const format = { type: "grammar", grammar: { syntax: "regex", definition } };
    const tools = [{ type: "custom", custom: { name: "a", format } }];
    expect((await post({ tools })).status).toBe(200);
  },
);

test("a whole answer has the input as text", async () => {
  const made = [
    { id: "call_0", name: "patch", arguments: '{"input":"*** Begin\\n"}' },
    { id: "call_1", name: "find", arguments: "" },
  ];
  world.chat.script = [
    ...calls([made[0]!.arguments]),
    ...calls([""], "find", 1),
    finish("tool_calls", made),
  ];
  const { body } = await post({ tools: [find, patch] });
  expect(body.choices[0]).toMatchObject({ finish_reason: "tool_calls" });
  expect(body.choices[0].message.tool_calls).toEqual([
    { id: "call_0", type: "custom", custom: { name: "patch", input: "*** Begin\n" } },
    { id: "call_1", type: "function", function: { name: "find", arguments: "{}" } },
  ]);
});

test("a call that the limit cut has its input so far", async () => {
  const [start, begun] = calls(['{"input":"*** Be']);
  world.chat.script = [start!, begun!, finish("length")];
  const { body } = await post({ tools: [patch] });
  expect(body.choices[0].message.tool_calls).toEqual([
    { id: "call_0", type: "custom", custom: { name: "patch", input: "*** Be" } },
  ]);
});

test("a stream has the input's deltas", async () => {
  world.chat.script = [
    ...calls(['{"in', 'put": "*** Be', "gin\\", 'n"}']),
    ...calls(['{"a":', "1}"], "find", 1),
    finish("tool_calls"),
  ];
  expect(await deltas({ tools: [find, patch] })).toEqual([
    { index: 0, id: "call_0", type: "custom", custom: { name: "patch", input: "" } },
    { index: 0, custom: { input: "*** Be" } },
    { index: 0, custom: { input: "gin" } },
    { index: 0, custom: { input: "\n" } },
    { index: 1, id: "call_1", type: "function", function: { name: "find", arguments: "" } },
    { index: 1, function: { arguments: '{"a":' } },
    { index: 1, function: { arguments: "1}" } },
  ]);
});

test("a call goes back as it came, and its result finds it", async () => {
  const call = { id: "call_1", type: "custom", custom: { name: "patch", input: 'a "b"' } };
  const history = [
    ...messages,
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "call_1", content: "Done." },
  ];
  const { status } = await post({ messages: history, tools: [patch] });
  expect(status).toBe(200);
  expect(asked().messages).toMatchObject([
    ...messages,
    {
      role: "assistant",
      toolCalls: [{ id: "call_1", name: "patch", arguments: '{"input":"a \\"b\\""}' }],
    },
    { role: "tool", toolCallId: "call_1", name: "patch", content: "Done." },
  ]);
});

describe("tool_choice", () => {
  test.each([
    { type: "custom", custom: { name: "patch" } },
    {
      type: "allowed_tools",
      allowed_tools: { mode: "required", tools: [{ type: "custom", custom: { name: "patch" } }] },
    },
  ])("%j", async (choice) => {
    const { status } = await post({ tools: [find, patch], tool_choice: choice });
    expect(status).toBe(200);
    expect(asked().guidance).toMatchObject({ toolChoice: "required", allowed: ["patch"] });
  });

  test("names one that is not offered: 400", async () => {
    const choice = { type: "custom", custom: { name: "other" } };
    const { status, body } = await post({ tools: [patch], tool_choice: choice });
    expect([status, body.error.param]).toEqual([400, "tool_choice"]);
    expect(body.error.message).toContain('"other", which is not offered');
  });
});

test.each<[string, object, string]>([
  ["a tool without its object", { tools: [{ type: "custom", name: "a" }] }, "tools[0].custom"],
  ["a tool without a name", { tools: [{ type: "custom", custom: {} }] }, "tools[0].custom.name"],
  [
    "two tools of one name",
    { tools: [{ type: "function", function: { name: "patch" } }, patch] },
    "tools[1].custom.name",
  ],
  [
    "a call without input",
    {
      messages: [
        ...messages,
        { role: "assistant", tool_calls: [{ id: "a", type: "custom", custom: { name: "b" } }] },
      ],
    },
    "messages[1].tool_calls[0].custom.input",
  ],
  [
    "a call of another type",
    { messages: [...messages, { role: "assistant", tool_calls: [{ id: "a", type: "mcp" }] }] },
    "messages[1].tool_calls[0].type",
  ],
])("%s is refused", async (_name, body, param) => {
  const { status, body: error } = await post(body);
  expect([status, error.error.param]).toEqual([400, param]);
});
