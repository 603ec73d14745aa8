/** A chat with a fake endpoint, over a tool loop with one tool. */

import { RemoteChat } from "../../../src/agents/remote/remote-chat.ts";
import { defineTool } from "../../../src/tools/tool-builder.ts";
import { runToolLoop } from "../../../src/tools/tool-loop.ts";
import type { ChatEvent, ChatRequest, ToolLogger } from "../../../src/chat/types.ts";
import type { Tool, ToolEvent } from "../../../src/tools/types.ts";
import {
  chunk,
  type FakeAnswer,
  type FakeEndpoint,
  startFakeEndpoint,
  streamed,
  usageChunk,
} from "../../support/fake-endpoint.ts";
import { greedy } from "../../support/sampling.ts";

export let fake: FakeEndpoint;

/** After each test. */
export const closeFake = (): Promise<void> => fake.close();

export const said: string[] = [];
const logger: ToolLogger = {
  info: () => {},
  warn: (_details, message) => said.push(message),
  error: (_details, message) => said.push(message),
};

export const add = defineTool("add", "Add two numbers")
  .param("a", "integer", "First", true)
  .param("b", "integer", "Second", true)
  .run(({ a, b }) => String(Number(a) + Number(b)));

export const args = '{"a": 2, "b": 3}';
export const callDelta = (fields: object = {}): object =>
  chunk({
    tool_calls: [
      {
        index: 0,
        id: "x",
        type: "function",
        function: { name: "add", arguments: args },
        ...fields,
      },
    ],
  });
/** The body of the question that `ask` asks, without samplers. */
export const unsampled = {
  model: "far",
  stream: true,
  stream_options: { include_usage: true },
  messages: [{ role: "user", content: "2 + 3?" }],
  seed: 0,
  tools: [{ type: "function", function: add.definition }],
};
export const answer = streamed(
  chunk({ content: "It is " }),
  chunk({ content: "5." }, "stop"),
  usageChunk,
);

/** An endpoint that answers so. */
export async function serve(...answers: FakeAnswer[]): Promise<void> {
  fake = await startFakeEndpoint(...answers);
}

export async function ask(
  answers: FakeAnswer[],
  {
    request = {},
    loop = {},
    tools = [add],
    timeoutMs = 30_000,
    onEvent = () => {},
  }: {
    request?: Partial<ChatRequest>;
    loop?: { maxRounds?: number };
    tools?: Tool[];
    timeoutMs?: number;
    onEvent?: (event: ChatEvent | ToolEvent) => void;
  } = {},
) {
  await serve(...answers);
  said.length = 0;
  const config = { url: fake.url, model: "far", apiKey: "key", timeoutMs, contextSize: 1000 };
  const chat = new RemoteChat(config);
  const events: (ChatEvent | ToolEvent)[] = [];
  let error: unknown = null;
  const body = {
    messages: [{ role: "user" as const, content: "2 + 3?" }],
    sampling: greedy,
    stop: [],
    owner: "me",
    ...request,
  };
  try {
    for await (const event of runToolLoop(chat, body, tools, { logger, ...loop })) {
      events.push(event);
      onEvent(event);
    }
  } catch (thrown) {
    error = thrown;
  }
  const text = events.map((event) => (event.type === "content" ? event.text : "")).join("");
  const results = events.flatMap((event) => (event.type === "tool-end" ? event.content : []));
  const last = events.at(-1);
  const finish = last?.type === "finish" ? last : null;
  return { events, text, results, finish, error, bodies: fake.requests.map(({ body: it }) => it) };
}
