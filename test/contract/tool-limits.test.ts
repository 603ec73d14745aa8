/** At a limit of the tool loop the model answers without tools, and the limit is told beside its answer. */

import { expect, test } from "vitest";
import { AgentDirectory } from "../../src/agents/agent-directory.ts";
import { parseAgentsConfig } from "../../src/agents/agents-config.ts";
import type { ToolCall } from "../../src/chat/types.ts";
import { type ConversationsWorld, createConversationsWorld } from "./conversations-world.ts";
import {
  FakeChat,
  type ScriptStep,
  callEvents,
  createWorld,
  fakeTool,
  finish,
  provider,
} from "./fake-services.ts";
import { usage } from "./fake-figures.ts";

const notice = "No more tools were called: the limit of 1 rounds of tool calls is reached.";
const messages = [{ role: "user", content: "Count." }];

function round(id: string): ScriptStep[] {
  const call: ToolCall = { id, name: "read", arguments: "{}" };
  return [...callEvents(call), { type: "hold", calls: [call], usage }];
}

const tools = provider(fakeTool("read", { content: "one", isError: false }));
const script: ScriptStep[] = [
  ...round("call_1"),
  ...round("call_2"),
  { type: "content", text: "One." },
  finish("stop"),
];
const lastWords =
  "No more tools can be called. Answer my question now, in words, with what the results above say.\n\nMy question was: Count.";

function limitedWorld() {
  const world = createWorld({ tools, config: { maxToolRounds: 1 } });
  world.chat.script = script;
  return world;
}

const wires = [
  ["/v1/chat/completions", { messages }],
  ["/v1/messages", { messages, max_tokens: 99 }],
  ["/v1/responses", { input: "Count." }],
] as const;

test.each(wires)("%s", async (url, payload) => {
  const world = limitedWorld();
  const body = (await world.app.inject({ method: "POST", url, payload })).json();
  const told = body.choices?.[0].message ?? body;
  expect(told.warnings).toEqual([notice]);
  expect(JSON.stringify(body)).toContain(`One.\\n\\n[${notice}]`);
  // The second round's call is not run.
  const [first, second] = world.chat.outputs;
  expect(first?.[0]?.content).toBe("one");
  expect(world.chat.said).toEqual([lastWords, lastWords]);
  expect(second?.[0]?.content).toContain("Error: not run: the limit of 1 rounds");
});

test.each(wires)("%s, streamed", async (url, payload) => {
  const { app } = limitedWorld();
  const reply = await app.inject({ method: "POST", url, payload: { ...payload, stream: true } });
  expect(reply.body).toContain(`"warnings":["${notice}"]`);
  expect(reply.body).toContain("One.");
});

test("an answer that keeps the limits has no warnings", async () => {
  const { app } = createWorld();
  for (const [url, payload] of wires)
    expect((await app.inject({ method: "POST", url, payload })).body).not.toContain("warnings");
});

async function answerOf(world: ConversationsWorld, id: string): Promise<string | undefined> {
  const { body } = await world.call("GET", `/api/conversations/${id}`);
  return body.messages.at(-1)?.message;
}

test("a conversation", async () => {
  const world = await createConversationsWorld({ tools, config: { maxToolRounds: 1 } });
  const { id, stream_url: stream } = await world.begin("Count.", script);
  await world.read(stream);
  const text = await answerOf(world, id);
  await world.close();
  expect(text).toBe(`One.\n\n[${notice}]`);
  expect(world.chat.said).toEqual([lastWords, lastWords]);
});

test("an agent, and one that works for it", async () => {
  const chat = new FakeChat();
  const agents = {
    boss: { description: "Plans" },
    reader: { description: "Reads", tools: { files: ["read"] }, limits: { rounds: 1 } },
  };
  const config = parseAgentsConfig({ supervisor: "boss", agents }, "agents.json", {});
  const sampling = { temperature: 0, topK: 0, topP: 1, minP: 0, typicalP: 1, penaltyLastN: 0 };
  const penalties = { repeatPenalty: 1, frequencyPenalty: 0, presencePenalty: 0 };
  const served = {
    chat,
    contextSize: 1000,
    vocabularySize: 500,
    sampling: { ...sampling, ...penalties },
  };
  const directory = new AgentDirectory(config, { served, files: new Map(), tools });
  const world = createWorld({ chat, agents: directory, tools });
  const ask = async (model: string) => {
    const payload = { model, messages };
    const reply = await world.app.inject({ method: "POST", url: wires[0][0], payload });
    return reply.json().choices[0].message;
  };
  chat.script = script;
  expect(await ask("reader")).toMatchObject({
    content: `One.\n\n[${notice}]`,
    warnings: [notice],
  });

  const delegation = {
    id: "call_0",
    name: "delegate",
    arguments: '{"agent":"reader","task":"Count."}',
  };
  const boss: ScriptStep[] = [
    ...callEvents(delegation),
    { type: "hold", calls: [delegation], usage },
    { type: "content", text: "The reader said it." },
    finish("stop"),
  ];
  const before = chat.requests.length;
  chat.scriptFor = () => (chat.requests.length === before + 1 ? boss : script);
  expect((await ask("boss")).content).toBe("The reader said it.");
  expect(chat.outputs.at(-1)?.[0]?.content).toContain(`One.\n\n[${notice}]`);
});

const repeatNotice = "No more tools were called: the limit of repeated text is reached.";
const repeating: ScriptStep[] = [
  ...round("call_1"),
  { type: "content", text: "ha ha ha" },
  { type: "hold", calls: [], usage },
  { type: "content", text: "One." },
  finish("stop"),
];

test.each(wires)("%s: text that repeats itself", async (url, payload) => {
  const world = createWorld({ tools });
  world.chat.script = repeating;
  const body = (await world.app.inject({ method: "POST", url, payload })).json();
  const told = body.choices?.[0].message ?? body;
  expect(told.warnings).toEqual([repeatNotice]);
  const text =
    told.content?.[0]?.text === undefined
      ? JSON.stringify(body)
      : JSON.stringify(told.content.map((part: { text: string }) => part.text).join(""));
  expect(text).toContain(`One.\\n\\n[${repeatNotice}]`);
  expect(text).not.toContain("haOne");
  expect(world.chat.outputs.at(-1)).toEqual([]);
  expect(world.chat.said).toEqual([lastWords]);
});

test("a conversation: text that repeats itself is not told to the model again", async () => {
  const world = await createConversationsWorld({ tools });
  const { id, stream_url: stream } = await world.begin("Count.", repeating);
  await world.read(stream);
  const text = await answerOf(world, id);
  expect(text).toBe(`ha ha ha\n\nOne.\n\n[${repeatNotice}]`);
  const next = await world.call<{ stream_url: string }>("POST", `/api/conversations/${id}/runs`, {
    message: "And?",
  });
  await world.read(next.body.stream_url);
  await world.close();
  const said = world.chat.requests.at(-1)?.messages.map(({ content }) => content);
  expect(said).toEqual(["Count.", "", "one", `One.\n\n[${repeatNotice}]`, "And?"]);
});
