// A model that writes a call as a bare object: its arguments fit all the same. The shipped model goes on from there.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasMasks } from "../support/masks.ts";
import { type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

let server: ScriptedServer;
beforeAll(async () => {
  server = await startScriptedServer({ engine: { threads: 1 } });
});
afterAll(async () => server.close());

/** No model writes such arguments by itself. */
const parameters = {
  type: "object",
  properties: {
    gate: { enum: ["K7", "Q9"] },
    seats: { type: "integer", minimum: 371, maximum: 379 },
  },
  required: ["gate", "seats"],
  additionalProperties: false,
};
const fits = /^\{"gate": "(K7|Q9)", "seats": 37[1-9]\}$/u;
const tools = ["open_gate", "close_gate"].map((name) => ({
  type: "function" as const,
  function: { name, parameters },
}));
const call = '{"name": "open_gate", "arguments": {';

interface Told {
  content: string | null;
  calls: { name: string; arguments: string }[];
}

async function ask(question: string, fields: object): Promise<Told> {
  const messages = [{ role: "user" as const, content: question }];
  const body = {
    model: "any",
    messages,
    tools,
    max_tokens: 120,
    temperature: 1,
    seed: 5,
    ...fields,
  };
  const { choices } = await server.client.chat.completions.create(body);
  const { message } = choices[0]!;
  const streamed = await server.client.chat.completions.stream(body).finalChatCompletion();
  const calls = (said: typeof message): Told["calls"] =>
    (said.tool_calls ?? []).map((one) => {
      expect(one).not.toHaveProperty("validation_error");
      const { name, arguments: text } = (one as unknown as { function: Told["calls"][0] }).function;
      return { name, arguments: text };
    });
  expect(calls(streamed.choices[0]!.message)).toEqual(calls(message));
  return { content: message.content, calls: calls(message) };
}

describe.skipIf(!hasMasks)("a bare call", () => {
  test.each([
    ["at the beginning", call],
    ["in lines of its own", '{\n  "name": "open_gate",\n  "arguments": {'],
    ["behind a line", `I open it.\n\n${call}`],
    ["in a block", `\`\`\`json\n${call}`],
    ["in a block behind lines", `I open it.\nIt takes a while.\n\n\`\`\`json\n${call}`],
    ["in a list", `[${call}`],
  ])("fits its schema: %s", async (title, text) => {
    await server.begin(title, text);
    for (const fields of [{}, { parallel_tool_calls: false }]) {
      const { calls } = await ask(title, fields);
      expect(calls[0]).toMatchObject({ name: "open_gate", arguments: expect.stringMatching(fits) });
      if ("parallel_tool_calls" in fields) expect(calls).toHaveLength(1);
    }
  });

  test("is text if its tool may not be called", async () => {
    await server.begin("not allowed", `${call}"gate": 1}}`);
    const allowed = {
      mode: "auto",
      tools: [{ type: "function", function: { name: "close_gate" } }],
    };
    const tool_choice = { type: "allowed_tools", allowed_tools: allowed };
    const { content } = await ask("not allowed", { tool_choice });
    expect(content).toMatch(/^\{"name": "open_gate", "arguments": \{"gate": 1\}\}/u);
  });

  test.each(['{"name": "Anna"}', '{"name": "open_gate", "gate": 1}', `So: ${call}"gate": 1}}`])(
    "is none: %s",
    async (text) => {
      await server.begin(text, text);
      expect((await ask(text, {})).content).toContain(text);
    },
  );
});
