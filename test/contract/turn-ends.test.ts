/** How a turn with calls ends, and what the log and each wire say of it. */

import { afterEach, describe, expect, test } from "vitest";
import { defineTool } from "../../src/tools/tool-builder.ts";
import { agentDirectory } from "../support/agents.ts";
import { chunk, type FakeEndpoint, startFakeEndpoint, streamed } from "../support/fake-endpoint.ts";
import { eventually } from "../support/eventually.ts";
import { callText } from "../unit/chat/chat-fixtures.ts";
import { engineWorld } from "./engine-world.ts";
import type { Json } from "./responses-world.ts";

const parameters = { type: "object", properties: { city: { type: "string" } } };
const weather = { name: "get_weather", parameters };
const question = { role: "user", content: "Weather?" };
const chat = {
  messages: [question],
  tools: [{ type: "function", function: weather }],
};
const messages = {
  max_tokens: 100,
  messages: [question],
  tools: [{ name: "get_weather", input_schema: parameters }],
};
const responses = { input: "Weather?", tools: [{ type: "function", ...weather }] };

type World = ReturnType<typeof engineWorld>;

async function send({ app }: World, url: string, payload: object): Promise<Json> {
  const reply = await app.inject({ method: "POST", url, payload });
  expect(reply.statusCode).toBe(200);
  return reply.json();
}

const turns = ({ lines }: World): object[] =>
  lines
    .filter(({ msg }) => msg === "turn ended")
    .map(({ finish_reason, has_tool_calls, tool_calls }) => [
      finish_reason,
      has_tool_calls,
      tool_calls,
    ]);
const problems = ({ lines }: World): unknown[] =>
  lines.filter(({ level }) => Number(level) >= 40).map(({ msg }) => msg);

describe("a call of the own model that the token limit cuts", () => {
  const cut = `I look.\n\n${callText("Rome").slice(0, 56)}`;
  const cutRound = () => engineWorld([{ text: cut, end: "length" }]);
  const begun = '{"city":"R';

  test("the log says so, in the request's lines, and without its arguments", async () => {
    const world = cutRound();
    await send(world, "/v1/chat/completions", chat);
    expect(turns(world)).toEqual([["length", true, 1]]);
    expect(problems(world)).toEqual([
      "the token limit was reached: arguments of calls may be truncated",
      "tool calls with a finish reason that does not announce them",
      "the response was cut inside of tool calls",
    ]);
    const line = world.lines.find(({ incomplete }) => incomplete !== undefined)!;
    expect(line["incomplete"]).toEqual([expect.stringMatching(/^call_/)]);
    expect(line["reqId"]).toBe(world.lines.at(-1)!["reqId"]);
    expect(JSON.stringify(world.lines)).not.toContain("city");
  });

  test("is in the answer as far as it came, streamed or not, with the text before it", async () => {
    const whole = await send(cutRound(), "/v1/chat/completions", chat);
    const { message, finish_reason } = whole.choices[0];
    expect(finish_reason).toBe("length");
    expect(message.content.trim()).toBe("I look.");
    expect(message.tool_calls).toMatchObject([
      { type: "function", function: { name: "get_weather", arguments: begun } },
    ]);
    const payload = { ...chat, stream: true };
    const { body } = await cutRound().app.inject({
      method: "POST",
      url: "/v1/chat/completions",
      payload,
    });
    const deltas = [...body.matchAll(/^data: (\{.*)$/gm)].map(
      ([, data]) => JSON.parse(data!).choices[0].delta,
    );
    const pieces = deltas.flatMap(({ tool_calls: [call] = [] }) => call?.function.arguments ?? []);
    expect(pieces.join("")).toBe(begun);
    expect(deltas.map(({ content }) => content ?? "").join("")).toBe(message.content);
  });

  test("Messages and Responses have it too", async () => {
    const message = await send(cutRound(), "/v1/messages", messages);
    expect(message).toMatchObject({
      stop_reason: "max_tokens",
      content: [
        { type: "text" },
        { type: "tool_use", name: "get_weather", input: { arguments: begun } },
      ],
    });
    const response = await send(cutRound(), "/v1/responses", responses);
    expect(response).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [
        { type: "message", content: [{ text: expect.stringContaining("I look.") }] },
        { type: "function_call", status: "incomplete", arguments: begun },
      ],
    });
  });
});

test("a stop string that cuts a call is told as a cut", async () => {
  const text = callText("Rome").slice(0, 45);
  const { choices } = await send(
    engineWorld([{ text, end: "stop_string" }]),
    "/v1/chat/completions",
    chat,
  );
  expect(choices[0].finish_reason).toBe("length");
  const whole = callText("Rome").replace("</tool_call>", "").trimEnd();
  const { choices: ended } = await send(
    engineWorld([{ text: whole, end: "stop_string" }]),
    "/v1/chat/completions",
    chat,
  );
  expect(ended[0]).toMatchObject({
    finish_reason: "tool_calls",
    message: { tool_calls: [{ function: { arguments: '{"city":"Rome"}' } }] },
  });
});

test("a call that is cut before its name is known is logged too", async () => {
  const text = callText("Rome").slice(0, 20);
  const world = engineWorld([{ text, end: "length" }]);
  const { choices } = await send(world, "/v1/chat/completions", chat);
  expect(choices[0]).toMatchObject({ finish_reason: "length", message: { content: "" } });
  expect(turns(world)).toEqual([["length", true, 1]]);
  expect(problems(world)).toContain("the response was cut inside of tool calls");
});

test("a client that leaves inside a call is no problem of the server", async () => {
  const world = engineWorld([{ text: callText("Rome").slice(0, 56), end: "never" }]);
  const client = new AbortController();
  const reply = await fetch(`${await world.app.listen({ port: 0 })}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...chat, stream: true }),
    signal: client.signal,
  });
  const text = reply.body!.pipeThrough(new TextDecoderStream());
  for await (const piece of text.values({ preventCancel: true }))
    if (piece.includes("get_weather")) break;
  client.abort();
  await eventually(() => expect(turns(world)).toEqual([["cancelled", true, 1]]));
  await world.app.close();
  expect(problems(world)).toEqual([]);
});

describe("turn ended is logged once a turn, with its reason", () => {
  const tool = defineTool("get_weather", "").run(() => "sun");

  test.each<[string, string | { text: string; end: "length" }, unknown[]]>([
    ["text", "Sun.", ["stop", false, 0]],
    ["a call", callText("Rome"), ["tool_calls", true, 1]],
    ["text that is cut", { text: "Su", end: "length" }, ["length", false, 0]],
  ])("of the own model: %s", async (_title, round, expected) => {
    const world = engineWorld([round]);
    await send(world, "/v1/chat/completions", chat);
    expect(turns(world)).toEqual([expected]);
  });

  test("of an answer of two rounds", async () => {
    const world = engineWorld([callText("Rome"), "Sun."], [tool]);
    await send(world, "/v1/chat/completions", { messages: [question] });
    expect(turns(world)).toEqual([
      ["tool_calls", true, 1],
      ["stop", false, 0],
    ]);
    expect(problems(world)).toEqual([]);
  });

  test("not where no call is looked for", async () => {
    const world = engineWorld(["Hi."]);
    await send(world, "/v1/chat/completions", { messages: [question] });
    expect(turns(world)).toEqual([]);
  });
});

describe("a call that does not fit its schema, in what no mask can hold", () => {
  const repeated = { type: "string", pattern: "^(.)\\1" };
  const cities = { type: "object", properties: { city: repeated } };
  const tool = { name: "get_weather", parameters: cities };
  test.each<[string, object]>([
    ["/v1/chat/completions", { ...chat, tools: [{ type: "function", function: tool }] }],
    ["/v1/messages", { ...messages, tools: [{ name: tool.name, input_schema: cities }] }],
    ["/v1/responses", { ...responses, tools: [{ type: "function", ...tool }] }],
  ])("%s: the log says so, without its arguments", async (url, body) => {
    const world = engineWorld([callText("Rome")]);
    await send(world, url, body);
    const line = world.lines.find(({ msg }) => msg === "a call does not fit its tool's schema");
    expect(line).toMatchObject({ level: 40, tool: "get_weather", call: expect.any(String) });
    expect(JSON.stringify(world.lines)).not.toContain("Rome");
  });
});

describe("an agent with an endpoint", () => {
  let endpoint: FakeEndpoint;
  afterEach(() => endpoint.close());

  async function remoteWorld(...answers: Parameters<typeof startFakeEndpoint>): Promise<World> {
    endpoint = await startFakeEndpoint(...answers);
    const boss = {
      description: "Answers.",
      instructions: "Answer.",
      endpoint: { url: endpoint.url, model: "far" },
      tools: { function: "*" },
    };
    const tool = defineTool("get_weather", "").run(() => "sun");
    return engineWorld([], [tool], (own) =>
      agentDirectory({ supervisor: "boss", agents: { boss } }, own, { tools: () => [tool] }),
    );
  }

  const filtered = () => streamed(chunk({ content: "I must" }), chunk({}, "content_filter"));

  test.each<[string, object, object]>([
    [
      "/v1/chat/completions",
      { messages: [question] },
      { choices: [{ finish_reason: "content_filter" }] },
    ],
    ["/v1/messages", { max_tokens: 100, messages: [question] }, { stop_reason: "refusal" }],
    [
      "/v1/responses",
      { input: "Weather?" },
      { status: "incomplete", incomplete_details: { reason: "content_filter" } },
    ],
  ])("%s says that a content filter ended it", async (url, body, expected) => {
    const world = await remoteWorld(filtered());
    expect(await send(world, url, { ...body, model: "boss" })).toMatchObject(expected);
    expect(turns(world)).toEqual([["content_filter", false, 0]]);
  });

  test("its turns are logged once, with the reason that it gave", async () => {
    const call = { index: 0, id: "x", function: { name: "get_weather", arguments: "{}" } };
    const calls = streamed(chunk({ tool_calls: [call] }), chunk({}, "stop"));
    const world = await remoteWorld(calls, streamed(chunk({ content: "Sun." }, "stop")));
    await send(world, "/v1/chat/completions", { messages: [question], model: "boss" });
    expect(turns(world)).toEqual([
      ["stop", true, 1],
      ["stop", false, 0],
    ]);
    expect(problems(world)).toEqual([
      "tool calls with a finish reason that does not announce them",
    ]);
  });
});
