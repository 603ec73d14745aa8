/**
 * A client's own loop of ten tool rounds, whose JSON the client writes anew in each: token by token, a round's
 * prompt begins with everything that the round before read and wrote. The engine is a fake; over the real one
 * test/e2e/ten-rounds.test.ts measures the same by its cached tokens.
 */

import type { FastifyInstance } from "fastify";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Chat } from "../../src/chat/chat.ts";
import { buildServer } from "../../src/server/app.ts";
import { Approvals } from "../../src/tools/approvals.ts";
import { greedy } from "../support/sampling.ts";
import { type StoreWorld, storeWorld } from "../support/store-worlds.ts";
import { chatml } from "../unit/chat/chat-fixtures.ts";
import { FakeEngine, type FakeGeneration } from "../unit/chat/fake-engine.ts";
import { idleStats, usage } from "./fake-figures.ts";
import { FakeTextEngine } from "./fake-text-engine.ts";
import type { Json } from "./responses-world.ts";

const rounds = 10;
const parameters = { type: "object" };
let engine: FakeEngine;
let chat: Chat;
let stored: StoreWorld;
let store: Awaited<ReturnType<StoreWorld["open"]>>;
let app: FastifyInstance;

beforeEach(async () => {
  engine = new FakeEngine({ template: chatml });
  chat = new Chat(engine);
  stored = await storeWorld();
  store = await stored.open();
  const zero = { ...idleStats, ...usage };
  app = buildServer(
    {
      chat,
      engine: {
        ...new FakeTextEngine(),
        model: engine.model,
        stats: () => zero,
        onStep: () => {},
        onTokenInterval: () => {},
      },
      tools: null,
      approvals: new Approvals(),
      audit: null,
      store,
      model: { id: "tiny", created: 0, contextSize: 100_000, parallel: 2, vocabularySize: 2000 },
    },
    { apiKeys: [], sampling: greedy },
  );
});

afterEach(async () => {
  await app.close();
  await store.close();
  await stored.remove();
});

/** As a model may write it: spaces and an order of keys that no serializer would give back. */
function callOf(round: number): string {
  return `<tool_call>\n{"name":"read_chunk",  "arguments": {"start" :${round},"path":"RAG.md" }}\n</tool_call>`;
}

/** The same arguments with other spaces and another order. */
function rewritten(text: string): string {
  const value = JSON.parse(text) as Record<string, unknown>;
  return JSON.stringify(Object.fromEntries(Object.entries(value).reverse()), null, 2);
}

function nextRound(round: number): void {
  engine.rounds.push({ text: round < rounds ? callOf(round) : "It is about harbours." });
}

async function post(url: string, payload: object): Promise<Json> {
  const reply = await app.inject({ method: "POST", url, payload });
  expect(reply.statusCode, reply.body).toBe(200);
  return reply.json();
}

/** The end token alone is not in the cache. */
function startsWith(next: FakeGeneration, before: FakeGeneration): boolean {
  const known = before.tokens.slice(0, -1);
  return known.every((token, index) => next.request.prompt[index] === token);
}

function expectExact(): void {
  const { generations } = engine;
  expect(generations).toHaveLength(rounds + 1);
  for (let index = 1; index <= rounds; index++)
    expect(startsWith(generations[index]!, generations[index - 1]!), `round ${index}`).toBe(true);
  expect(chat.counters.splices).toBe(rounds);
}

describe("a round's prompt begins with what the round before read and wrote", () => {
  test("over Chat Completions", async () => {
    const tools = [{ type: "function", function: { name: "read_chunk", parameters } }];
    const messages: object[] = [{ role: "user", content: "Summarize RAG.md" }];
    for (let round = 0; round <= rounds; round++) {
      nextRound(round);
      const { choices } = await post("/v1/chat/completions", { messages, tools });
      const { message } = choices[0];
      if (round === rounds) expect(message.content).toBe("It is about harbours.");
      for (const call of message.tool_calls ?? []) {
        call.function.arguments = rewritten(call.function.arguments);
        messages.push(message, { role: "tool", tool_call_id: call.id, content: `chunk ${round}` });
      }
    }
    expectExact();
  });

  test.each([["replayed"], ["chained"]])("over Responses, the history %s", async (how) => {
    const tools = [{ type: "function", name: "read_chunk", parameters }];
    let input: object[] = [{ role: "user", content: "Summarize RAG.md" }];
    let previous: string | undefined;
    for (let round = 0; round <= rounds; round++) {
      nextRound(round);
      const isChained = how === "chained";
      const body = { input, tools, previous_response_id: previous, store: isChained };
      const { id, output } = await post("/v1/responses", body);
      if (isChained) input = [];
      if (isChained) previous = id;
      for (const item of output) {
        if (item.type !== "function_call") continue;
        if (!isChained) input.push({ ...item, arguments: rewritten(item.arguments) });
        const { call_id } = item;
        input.push({ type: "function_call_output", call_id, output: `chunk ${round}` });
      }
      if (round === rounds) expect(output[0].content[0].text).toBe("It is about harbours.");
    }
    expectExact();
  });
});

test("a forged or edited history gets none of the generated tokens", async () => {
  const tools = [{ type: "function", name: "read_chunk", parameters }];
  const user = { role: "user", content: "Summarize RAG.md" };
  nextRound(0);
  const first = await post("/v1/responses", { input: [user], tools });
  const [call] = first.output;
  const output = { type: "function_call_output", call_id: call.call_id, output: "chunk 0" };
  const forgeries: object[][] = [
    [user, { ...call, arguments: '{"start":0,"path":"other.md"}' }, output],
    [user, { ...call, call_id: "call_x" }, { ...output, call_id: "call_x" }],
    [user, { ...call, name: "other" }, output],
    [{ ...user, content: "Summarize it" }, call, output],
    [user, user, call, output],
  ];
  for (const input of forgeries) {
    engine.rounds.push({ text: "Ok." });
    await post("/v1/responses", { input, tools });
  }
  expect(chat.counters.splices).toBe(0);
  engine.rounds.push({ text: "Ok." });
  await post("/v1/responses", { input: [user, call, output], tools });
  expect(chat.counters.splices).toBe(1);
});
