// A client's own loop of ten tool rounds, whose JSON the client writes anew in each: every round costs its
// new tokens and no more, over either API. A history that was edited gets none of the generated tokens.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import type { Response, ResponseInputItem } from "openai/resources/responses/responses";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

const rounds = 10;
const parameters = { type: "object", properties: { path: { type: "string" } } };
let server: ScriptedServer;

beforeAll(async () => {
  server = await startScriptedServer({
    store: true,
    files: { "notes.txt": "At nine." },
    engine: { threads: 1 },
  });
});

afterAll(() => server.close());

/** As a model may write it: spaces and an order of keys that no serializer would give back. */
function turns(topic: string): string[] {
  const calls = Array.from(
    { length: rounds },
    (_, round) =>
      `<tool_call>\n{"name":"read_chunk",  "arguments": {"start" :${round},"path":"${topic}.md" }}\n</tool_call>`,
  );
  return [...calls, "It is about harbours."];
}

/** The same arguments with other spaces and another order. */
function rewritten(text: string): string {
  const value = JSON.parse(text) as Record<string, unknown>;
  return JSON.stringify(Object.fromEntries(Object.entries(value).reverse()), null, 2);
}

interface RoundCost {
  input: number;
  cached: number;
  output: number;
  /** The last token of a round that was held is output, and the first row of what it goes on with. */
  holds?: number;
}

/** Everything that the request before read or wrote is in the cache, but for the end token. */
function expectExact(costs: readonly RoundCost[], count = rounds + 1): void {
  expect(costs).toHaveLength(count);
  for (const [index, { cached }] of costs.entries()) {
    const before = costs[index - 1];
    if (before === undefined) continue;
    const { input, output, holds = 0 } = before;
    expect(cached).toBe(input + output - 1 - holds);
  }
}

describe("every round costs its new tokens", () => {
  test("over Chat Completions", async () => {
    await server.script("Summarize chat.md", turns("chat"));
    const messages: ChatCompletionMessageParam[] = [{ role: "user", content: "Summarize chat.md" }];
    const tools = [{ type: "function" as const, function: { name: "read_chunk", parameters } }];
    const costs: RoundCost[] = [];
    for (let round = 0; round <= rounds; round++) {
      const { choices, usage } = await server.client.chat.completions.create({
        model: "default",
        messages,
        tools,
      });
      costs.push({
        input: usage!.prompt_tokens,
        cached: usage!.prompt_tokens_details!.cached_tokens!,
        output: usage!.completion_tokens,
      });
      const { message } = choices[0]!;
      for (const call of message.tool_calls ?? []) {
        if (call.type !== "function") continue;
        call.function.arguments = rewritten(call.function.arguments);
        const content = `chunk ${round}`;
        messages.push(message, { role: "tool", tool_call_id: call.id, content });
      }
      if (round === rounds) expect(message.content).toBe("It is about harbours.");
    }
    expectExact(costs);
  });

  test.each([["replayed"], ["chained"]])("over Responses, the history %s", async (how) => {
    const question = `Summarize ${how}.md`;
    await server.script(question, turns(how));
    const tools = [{ type: "function" as const, name: "read_chunk", parameters, strict: false }];
    let input: ResponseInputItem[] = [{ role: "user", content: question }];
    let previous: string | null = null;
    const costs: RoundCost[] = [];
    for (let round = 0; round <= rounds; round++) {
      const response: Response = await server.client.responses.create({
        model: "default",
        input,
        tools,
        previous_response_id: previous,
        store: how === "chained",
      });
      const usage = response.usage!;
      costs.push({
        input: usage.input_tokens,
        cached: usage.input_tokens_details.cached_tokens,
        output: usage.output_tokens,
      });
      if (how === "chained") input = [];
      previous = how === "chained" ? response.id : null;
      for (const item of response.output) {
        if (item.type !== "function_call") continue;
        const call = { ...item, arguments: rewritten(item.arguments) };
        if (how === "replayed") input.push(call);
        input.push({
          type: "function_call_output",
          call_id: item.call_id,
          output: `chunk ${round}`,
        });
      }
      if (round === rounds) expect(response.output_text).toBe("It is about harbours.");
    }
    expectExact(costs);
  });
});

describe("an answer of several rounds, whose tools ran here, costs nothing when it comes back", () => {
  const read = (more = {}): string =>
    callText("read_text_file", { path: `${server.folder}/notes.txt`, ...more });

  test("as one message, over Chat Completions", async () => {
    // Each request says what the script has behind as many turns as its client saw.
    await server.script("Read it", [`Well.\n${read()}`, read({ head: 1 }), "At nine."]);
    const messages: ChatCompletionMessageParam[] = [];
    const costs: RoundCost[] = [];
    for (const [index, content] of ["Read it", "Again", "Sure?"].entries()) {
      messages.push({ role: "user", content });
      const { choices, usage } = await server.client.chat.completions.create({
        model: "default",
        messages,
      });
      messages.push(choices[0]!.message);
      costs.push({
        input: usage!.prompt_tokens,
        cached: usage!.prompt_tokens_details!.cached_tokens!,
        output: usage!.completion_tokens,
        holds: 2 - index,
      });
    }
    expect(messages.at(-1)!.content).toBe("At nine.");
    expect(messages[1]!.content).toMatch(/^Well\.\s*At nine\.$/);
    expectExact(costs, 3);
  });

  test.each([["replayed"], ["chained"]])("as items, over Responses, %s", async (how) => {
    const question = `Read it, ${how}`;
    await server.script(question, [read(), read({ head: 1 }), "At nine.", "Sure."]);
    const tool = {
      type: "mcp" as const,
      server_label: server.mcpServer,
      require_approval: "never" as const,
    };
    const request = { model: "default", tools: [tool] };
    const user: ResponseInputItem = { role: "user", content: question };
    const first = await server.client.responses.create({ ...request, input: [user] });
    const sure: ResponseInputItem = { role: "user", content: "Sure?" };
    const second = await server.client.responses.create(
      how === "chained"
        ? { ...request, input: [sure], previous_response_id: first.id }
        : { ...request, input: [user, ...(first.output as ResponseInputItem[]), sure] },
    );
    expect(second.output_text).toBe("Sure.");
    const costs = [first.usage!, second.usage!].map((usage) => ({
      input: usage.input_tokens,
      cached: usage.input_tokens_details.cached_tokens,
      output: usage.output_tokens,
      holds: 2,
    }));
    expectExact(costs, 2);
  });
});

test("an edited call gets none of the generated tokens", async () => {
  await server.script("Summarize forged.md", turns("forged"));
  const tools = [{ type: "function" as const, name: "read_chunk", parameters, strict: false }];
  const request = { model: "default", tools, store: false, max_output_tokens: 24 };
  const user = { role: "user" as const, content: "Summarize forged.md" };
  const first = await server.client.responses.create({
    ...request,
    input: [user],
    max_output_tokens: 64,
  });
  const call = first.output.find((item) => item.type === "function_call")!;
  const output = {
    type: "function_call_output" as const,
    call_id: call.call_id,
    output: "chunk 0",
  };
  const splices = server.chat.counters.splices;
  const edited = { ...call, arguments: '{"start":0,"path":"other.md"}' };
  await server.client.responses.create({ ...request, input: [user, edited, output] });
  const moved = [
    { ...user, content: "Summarize forged.md" },
    { role: "user" as const, content: "x" },
  ];
  await server.client.responses.create({ ...request, input: [...moved, call, output] });
  expect(server.chat.counters.splices).toBe(splices);
  await server.client.responses.create({ ...request, input: [user, call, output] });
  expect(server.chat.counters.splices).toBe(splices + 1);
});
