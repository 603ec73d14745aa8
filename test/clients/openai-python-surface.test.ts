/** Every method of openai for Python does what it says, or is told clearly that there is no such thing. */

import { execFile } from "node:child_process";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fakeEmbedder } from "../contract/fake-services.ts";
import { createResponsesWorld, type ResponsesWorld } from "../contract/responses-world.ts";
import { pythonWith } from "../support/python.ts";

interface Called {
  name: string;
  outcome: string;
  exchanges: { status: number; type: string; body: string }[];
}

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
const python = pythonWith("openai");

const messages = [{ role: "user", content: "Hi" }];
const chat = { model: "tiny", messages };
const response = { model: "tiny", input: "Hi" };
const item = { type: "message", role: "user", content: "Hi" };
/** They send nothing: a socket, a file of this machine or a secret comes first. */
const local =
  /\.connect$|^webhooks\.(?:unwrap|verify_signature)$|^uploads\.upload_file_chunked$|^beta\.agents\.environments\.files\.(?:prepare|prepare_directory|upload)$|^beta\.agents\.sessions\.(?:stream|artifacts\.for_result)$/;

let world: ResponsesWorld;
beforeAll(async () => (world = await createResponsesWorld({ embedder: fakeEmbedder })));
afterAll(() => world.close());

async function make(url: string, body: object): Promise<string> {
  return ((await world.call("POST", url, body)).body as { id: string }).id;
}

const completion = async () => ({
  completion_id: await make("/v1/chat/completions", { ...chat, store: true }),
});
const stored = async () => ({
  response_id: await make("/v1/responses", { ...response, background: true }),
});
const conversation = async () => ({ conversation_id: await make("/v1/conversations", {}) });

async function conversationItem(): Promise<object> {
  const conversation_id = await make("/v1/conversations", { items: [item] });
  const { body } = await world.call("GET", `/v1/conversations/${conversation_id}/items`);
  return { conversation_id, item_id: (body as { data: { id: string }[] }).data[0]!.id };
}

/** Each with an object of its own. */
async function supportedCalls(): Promise<Record<string, object>> {
  const ofChat = async (prefix: string) => ({
    [`${prefix}.create`]: chat,
    [`${prefix}.delete`]: await completion(),
    [`${prefix}.list`]: { limit: 5 },
    [`${prefix}.messages.list`]: await completion(),
    [`${prefix}.parse`]: chat,
    [`${prefix}.retrieve`]: await completion(),
    [`${prefix}.stream`]: chat,
    [`${prefix}.update`]: { ...(await completion()), metadata: { a: "b" } },
  });
  const ofResponses = async (prefix: string) => ({
    [`${prefix}.cancel`]: await stored(),
    [`${prefix}.compact`]: response,
    [`${prefix}.create`]: response,
    [`${prefix}.delete`]: await stored(),
    [`${prefix}.input_items.list`]: await stored(),
    [`${prefix}.input_tokens.count`]: response,
    [`${prefix}.retrieve`]: await stored(),
  });
  return {
    ...(await ofChat("chat.completions")),
    ...(await ofChat("beta.chat.completions")),
    ...(await ofResponses("responses")),
    ...(await ofResponses("beta.responses")),
    "responses.parse": response,
    "responses.stream": response,
    "completions.create": { model: "tiny", prompt: "A" },
    "conversations.create": { metadata: {} },
    "conversations.delete": await conversation(),
    "conversations.items.create": { ...(await conversation()), items: [item] },
    "conversations.items.delete": await conversationItem(),
    "conversations.items.list": await conversation(),
    "conversations.items.retrieve": await conversationItem(),
    "conversations.retrieve": await conversation(),
    "conversations.update": { ...(await conversation()), metadata: { a: "b" } },
    "embeddings.create": { model: "vectors", input: "A" },
    "models.list": { timeout: 5 },
    "models.retrieve": { model: "tiny" },
  };
}

test.skipIf(python === undefined)(
  "every method works or is told what there is (skipped without Python and pip)",
  async () => {
    const supported = await supportedCalls();
    await world.app.listen({ port: 0, host: "127.0.0.1" });
    const { port } = world.app.server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/v1`;
    const { stdout } = await promisify(execFile)(
      python!,
      [path("openai_surface.py"), url, JSON.stringify(supported)],
      { timeout: 200_000, maxBuffer: 2 ** 28 },
    );
    const calls = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Called);
    expect(calls.length).toBeGreaterThan(300);
    const called = new Map(calls.map((call) => [call.name, call]));
    for (const name of Object.keys(supported)) {
      const { outcome, exchanges } = called.get(name) ?? { outcome: "is not there" };
      expect([name, outcome, exchanges?.[0]?.status]).toEqual([name, "ok", 200]);
    }
    for (const { name, outcome, exchanges } of calls) {
      if (name in supported) continue;
      expect([name, exchanges.length]).toEqual([name, local.test(name) ? 0 : 1]);
      for (const { status, type, body } of exchanges) {
        expect([name, type]).toEqual([name, "application/json; charset=utf-8"]);
        const { error } = JSON.parse(body) as { error: { code: string; message: string } };
        const wanted = status === 405 ? "method_not_allowed" : "not_found";
        expect([name, error.code]).toEqual([name, wanted]);
        if (status !== 405) expect(error.message).toContain("/v1/chat/completions");
        expect(`${name}: ${outcome}`).toMatch(/: openai\.(?:NotFoundError|APIStatusError)/);
      }
    }
  },
);
