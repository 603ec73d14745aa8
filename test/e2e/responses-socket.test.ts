// WebSocket mode against `fermata serve` with the shipped model: openai's own client, and the server's end.
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

function connect() {
  const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none" });
  const client = new ResponsesWS(openai);
  const closed = new Promise<number>((resolve) => client.socket.once("close", resolve));
  const ask = (input: string, previous?: string): Promise<OpenAI.Responses.Response> =>
    new Promise((resolve, reject) => {
      client.once("response.completed", ({ response }) => resolve(response));
      client.once("error", reject);
      const previous_response_id = previous ?? null;
      const shared = { type: "response.create", model: "any", temperature: 0 } as const;
      client.send({ ...shared, input, previous_response_id, store: false });
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

test("SIGTERM closes an idle connection with 1001, and the server ends", async () => {
  const { closed, ask } = connect();
  await ask("Count from 1 to 3.");
  const code = server.stop();
  expect(await closed).toBe(1001);
  expect(await code).toBe(0);
});
