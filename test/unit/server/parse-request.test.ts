import { describe, expect, test } from "vitest";
import { defaultSampling } from "../../../src/cli/model-files.ts";
import { finish } from "../../../src/parts.ts";
import { parseChatCompletionRequest } from "../../../src/server/chat-completions/request.ts";
import { OnceWarnings } from "../../../src/server/body/warnings.ts";

const limits = {
  contextSize: 1000,
  vocabularySize: 500,
  sampling: { ...defaultSampling, seed: 1, logitBias: [] },
};
const user = { role: "user", content: "Hi" };

function parse(body: object) {
  const warned: string[] = [];
  const request = finish(parseChatCompletionRequest(body, limits, (key) => warned.push(key)));
  return { request, warned };
}

function messages(...list: object[]) {
  return parse({ messages: list }).request.messages;
}

describe("messages", () => {
  test("system and developer messages that lead are system messages", () => {
    const list = messages(
      { role: "system", content: "A" },
      { role: "developer", content: "B" },
      { role: "developer", content: "C" },
      user,
    );
    expect(list).toEqual([
      { role: "system", content: "A" },
      { role: "system", content: "B" },
      { role: "system", content: "C" },
      { role: "user", content: "Hi" },
    ]);
  });

  test("a later one keeps its place as a user message", () => {
    expect(
      messages({ role: "system", content: "A" }, user, { role: "system", content: "B" }),
    ).toEqual([
      { role: "system", content: "A" },
      { role: "user", content: "Hi" },
      { role: "user", content: "B" },
    ]);
    expect(messages(user, { role: "developer", content: "B" })[1]).toEqual({
      role: "user",
      content: "B",
    });
  });

  test("text parts are joined by newlines", () => {
    const content = [
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ];
    expect(messages({ role: "user", content })[0]!.content).toBe("a\nb");
  });

  test("an assistant's content may be null or absent", () => {
    const turns = [{ role: "assistant", content: null }, user, { role: "assistant" }, user];
    const silent = { role: "assistant", content: "" };
    expect(messages(user, ...turns).slice(1)).toMatchObject([silent, user, silent, user]);
  });

  test("calls and results; arguments stay as they came", () => {
    const call = (id: string, args: unknown) => ({
      id,
      type: "function",
      function: { name: "f", arguments: args },
    });
    const list = messages(
      user,
      {
        role: "assistant",
        content: "",
        reasoning_content: "Hm.",
        tool_calls: [call("a", '{"x": '), call("b", { x: 1 }), call("c", undefined)],
      },
      { role: "tool", tool_call_id: "b", content: [{ type: "text", text: "5" }] },
      { role: "tool", tool_call_id: "a", content: null },
    );
    expect(list.slice(1)).toEqual([
      {
        role: "assistant",
        content: "",
        reasoning: "Hm.",
        toolCalls: [
          { id: "a", name: "f", arguments: '{"x": ' },
          { id: "b", name: "f", arguments: '{"x":1}' },
          { id: "c", name: "f", arguments: "{}" },
        ],
      },
      { role: "tool", toolCallId: "b", name: "f", content: "5" },
      { role: "tool", toolCallId: "a", name: "f", content: "" },
    ]);
  });
});

describe("tools", () => {
  test("parameters may be missing; tools of other types are skipped with a warning", () => {
    const { request, warned } = parse({
      messages: [user],
      tools: [
        {
          type: "function",
          function: { name: "f", description: null, parameters: null, strict: true },
        },
        { type: "web_search" },
      ],
    });
    expect(request.tools).toEqual([
      { name: "f", parameters: { type: "object", properties: {} }, strict: true },
    ]);
    expect(warned).toEqual(["tools[].type=web_search"]);
  });

  test("not given and empty differ", () => {
    expect(parse({ messages: [user] }).request.tools).toBeNull();
    expect(parse({ messages: [user], tools: [] }).request.tools).toEqual([]);
  });
});

describe("no key passes in silence", () => {
  test("harmless and unknown ones are warned about", () => {
    const body = {
      messages: [{ ...user, name: "Ann" }],
      user: "u",
      metadata: {},
      store: true,
      service_tier: "flex",
      frobnicate: 1,
    };
    expect(parse(body).warned).toEqual(["user", "service_tier", "frobnicate", "messages[].name"]);
  });

  test("values that ask for nothing special are not", () => {
    const body = {
      messages: [user],
      n: 1,
      logprobs: false,
      top_logprobs: 0,
      store: false,
      service_tier: "auto",
      parallel_tool_calls: true,
      response_format: { type: "text" },
      modalities: ["text"],
      tool_choice: "auto",
      audio: null,
      stream: true,
      stream_options: { include_usage: false, include_obfuscation: false },
    };
    expect(parse(body).warned).toEqual([]);
  });

  test("each is said once, and a flood of names is not remembered for ever", () => {
    const said: string[] = [];
    const { warn } = new OnceWarnings(({ field }) => said.push(field));
    warn("user", "is not used");
    warn("user", "is not used");
    expect(said).toEqual(["user"]);
    for (let index = 0; index < 5000; index++) warn(`key${index}`, "is unknown");
    expect(said.length).toBe(1000);
    expect(said.every((field) => field.length <= 80)).toBe(true);
  });
});

test("null is as good as absent", () => {
  const nulls = Object.fromEntries(
    [
      "model",
      "temperature",
      "top_p",
      "seed",
      "stop",
      "max_tokens",
      "max_completion_tokens",
      "stream",
      "stream_options",
      "tools",
      "tool_choice",
      "n",
      "response_format",
      "logit_bias",
    ].map((key) => [key, null]),
  );
  expect(parse({ messages: [user], ...nulls }).request).toEqual(
    parse({ messages: [user] }).request,
  );
});
