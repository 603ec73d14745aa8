// Tool loops of 8 rounds that clients drive themselves, over each API and on each kind of model's memory: what is
// computed is hardly more than what is new, counted at /metrics.
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import type { Response, ResponseInputItem } from "openai/resources/responses/responses";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { modelPath } from "../support/engine.ts";
import { kinds } from "../support/kind-tensors.ts";
import { writeRandomKind } from "../support/random-kinds.ts";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";
import { metric } from "../support/metric.ts";

const rounds = 8;
const most = 1.05;
const parameters = { type: "object" as const, properties: { part: { type: "integer" } } };
const description = "Reads a part of the file. ".repeat(8);
const part = (round: number): string =>
  `Part ${round}. ${"It tells of harbours and ships. ".repeat(6)}`;
const answer = "It is about harbours.";

describe.each(["dense", ...kinds] as const)("%s", (kind) => {
  let server: ScriptedServer;
  beforeAll(async () => {
    const path = kind === "dense" ? modelPath : writeRandomKind(kind);
    server = await startScriptedServer({
      store: true,
      engine: { modelPath: path, threads: 1, contextSize: 4096, parallel: 2 },
    });
  });
  afterAll(() => server.close());

  /** @param loop resolves to the tokens of its last prompt and its last answer */
  async function expectOnlyNew(question: string, loop: () => Promise<number>): Promise<void> {
    const calls = Array.from({ length: rounds }, (_, round) =>
      callText("read_part", { part: round }),
    );
    await server.script(question, [...calls, answer]);
    const before = await metric(server, "fermata_prefilled_tokens_total");
    const recomputed = await metric(server, "fermata_recomputed_tokens_total");
    const generated = await metric(server, "fermata_generated_tokens_total");
    // All that was ever new: the last prompt has everything.
    const tokens = await loop();
    const drawn = (await metric(server, "fermata_generated_tokens_total")) - generated;
    const computed = (await metric(server, "fermata_prefilled_tokens_total")) - before;
    expect(computed).toBeGreaterThan((tokens - drawn) / 2);
    expect(computed + drawn).toBeLessThanOrEqual(tokens * most);
    expect(await metric(server, "fermata_recomputed_tokens_total")).toBe(recomputed);
  }

  test("Chat Completions", async () => {
    const messages: ChatCompletionMessageParam[] = [
      { role: "user", content: "Read it in a chat." },
    ];
    const tools = [
      { type: "function" as const, function: { name: "read_part", description, parameters } },
    ];
    await expectOnlyNew("Read it in a chat.", async () => {
      for (let round = 0; ; round++) {
        const { choices, usage } = await server.client.chat.completions.create({
          model: "default",
          messages,
          tools,
        });
        const { message } = choices[0]!;
        messages.push(message);
        for (const { id } of message.tool_calls ?? [])
          messages.push({ role: "tool", tool_call_id: id, content: part(round) });
        if (round < rounds) continue;
        expect(message.content).toBe(answer);
        return usage!.prompt_tokens + usage!.completion_tokens;
      }
    });
    // The last answer anew.
    const before = await metric(server, "fermata_prefilled_tokens_total");
    const again = { model: "default", messages: messages.slice(0, -1), tools };
    const { choices } = await server.client.chat.completions.create(again);
    expect(choices[0]!.message.content).toBe(answer);
    const computed = (await metric(server, "fermata_prefilled_tokens_total")) - before;
    expect(computed).toBeLessThanOrEqual(64);
  });

  test("Responses, chained", async () => {
    const tools = [
      { type: "function" as const, name: "read_part", description, parameters, strict: false },
    ];
    let input: ResponseInputItem[] = [{ role: "user", content: "Read it in a response." }];
    let previous: string | null = null;
    await expectOnlyNew("Read it in a response.", async () => {
      for (let round = 0; ; round++) {
        const response: Response = await server.client.responses.create({
          model: "default",
          input,
          tools,
          previous_response_id: previous,
        });
        previous = response.id;
        input = response.output.flatMap((item) =>
          item.type === "function_call"
            ? [{ type: "function_call_output", call_id: item.call_id, output: part(round) }]
            : [],
        );
        if (round < rounds) continue;
        expect(response.output_text).toBe(answer);
        return response.usage!.total_tokens;
      }
    });
  });

  test("Messages", async () => {
    const messages: object[] = [{ role: "user", content: "Read it in a message." }];
    const tools = [{ name: "read_part", description, input_schema: parameters }];
    await expectOnlyNew("Read it in a message.", async () => {
      for (let round = 0; ; round++) {
        const reply = await fetch(`${server.url}/v1/messages`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ model: "default", max_tokens: 256, messages, tools }),
        });
        expect(reply.status).toBe(200);
        const { content, usage } = (await reply.json()) as {
          content: { type: string; id?: string; text?: string }[];
          usage: Record<string, number>;
        };
        messages.push({ role: "assistant", content });
        const calls = content.filter(({ type }) => type === "tool_use");
        const results = calls.map(({ id }) => ({
          type: "tool_result",
          tool_use_id: id,
          content: part(round),
        }));
        messages.push({ role: "user", content: results });
        if (round < rounds) continue;
        expect(content).toMatchObject([{ type: "text", text: answer }]);
        return [
          "input_tokens",
          "cache_creation_input_tokens",
          "cache_read_input_tokens",
          "output_tokens",
        ].reduce((sum, name) => sum + usage[name]!, 0);
      }
    });
  });
});
