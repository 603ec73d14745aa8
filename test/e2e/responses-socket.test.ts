// WebSocket mode against `fermata serve` with the shipped model: openai's own client, and the server's end.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { type ServedCommand, serveCommand } from "../support/command-line.ts";

let server: ServedCommand;
beforeAll(async () => {
  server = await serveCommand("--store", "none");
});
afterAll(async () => {
  await server.stop();
});

function connect({ url } = server) {
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
  const client = new ResponsesWS(openai);
  const closed = new Promise<number>((resolve) => client.socket.once("close", resolve));
  const ask = (
    input: OpenAI.Responses.ResponseCreateParams["input"],
    previous?: string,
    more: object = {},
  ): Promise<OpenAI.Responses.Response> =>
    new Promise((resolve, reject) => {
      client.once("response.completed", ({ response }) => resolve(response));
      client.once("response.incomplete", ({ response }) => resolve(response));
      client.once("error", reject);
      const previous_response_id = previous ?? null;
      const shared = { type: "response.create", model: "any", temperature: 0 } as const;
      client.send({ ...shared, input: input!, previous_response_id, store: false, ...more });
    });
  return { client, closed, ask };
}

test("a second turn finds all of the first in the cache, without a store", async () => {
  const { client, closed, ask } = connect();
  const first = await ask("Count from 1 to 3.");
  expect(first.usage!.output_tokens).toBeGreaterThan(1);
  const second = await ask("Go on.", first.id);
  // All but the end token.
  expect(second.usage!.input_tokens_details.cached_tokens).toBe(first.usage!.total_tokens - 1);
  expect(second.previous_response_id).toBe(first.id);
  client.close();
  await closed;
});

/** What codex sends when a session starts: instructions and tools, and then, with the turn, more instructions. */
async function readAhead({ ask }: Pick<ReturnType<typeof connect>, "ask">) {
  const tools = ["read_file", "write_file", "list_directory"].map((name) => ({
    type: "function",
    name,
    description: `Use ${name} with the path of a file, as the name says.`,
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
    strict: false,
  }));
  const instructions = { role: "developer", content: "You edit files for a person." } as const;
  const skills = { role: "developer", content: "Be brief." } as const;
  const question = { role: "user", content: "Count from 1 to 3." } as const;
  const ahead = await ask([instructions], undefined, { tools, generate: false });
  const turn = await ask([skills, question], ahead.id, { tools, max_output_tokens: 8 });
  return { ahead: ahead.usage!, turn: turn.usage! };
}

test("what was read ahead is found by a turn that begins with more system messages", async () => {
  const { client, closed, ask } = connect();
  const { ahead, turn } = await readAhead({ ask });
  expect(ahead.output_tokens).toBe(0);
  const { cached_tokens: found } = turn.input_tokens_details;
  // All but the opening of the answer, of which a special token begins the next system message, too.
  expect(ahead.input_tokens - found).toBe(3);
  client.close();
  await closed;
});

test("what a template refuses without a user's message is read ahead up to there", async () => {
  const directory = mkdtempSync(join(tmpdir(), "fermata-"));
  const template = join(directory, "template.jinja");
  writeFileSync(
    template,
    `{{ '<|im_start|>system\n' }}{% for tool in tools or [] %}{{ tool | tojson }}\n{% endfor %}
{%- for message in messages %}{% if message.role == 'system' and not loop.first %}{{ raise_exception('one system message') }}{% endif %}
{{- '' if loop.first and message.role == 'system' else '<|im_start|>' + message.role + '\n' }}{{ message.content + '<|im_end|>\n' }}{% endfor %}
{%- if messages[-1].role == 'system' %}{{ raise_exception('no user') }}{% endif %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`,
  );
  const other = await serveCommand("--store", "none", "--chat-template-file", template);
  try {
    const { client, closed, ask } = connect(other);
    const { ahead, turn } = await readAhead({ ask });
    // The tools and the first system message, which ends with a full stop and goes on with blank lines.
    const found = turn.input_tokens_details.cached_tokens;
    expect(found).toBeGreaterThan(150);
    expect(ahead.input_tokens - found).toBeLessThan(6);
    await expect(ask([{ role: "developer", content: "Be brief." }])).rejects.toThrow("no user");
    client.close();
    await closed;
  } finally {
    await other.stop();
    rmSync(directory, { recursive: true });
  }
});

test("SIGTERM closes an idle connection with 1001, and the server ends", async () => {
  const { closed, ask } = connect();
  await ask("Count from 1 to 3.");
  const code = server.stop();
  expect(await closed).toBe(1001);
  expect(await code).toBe(0);
});
