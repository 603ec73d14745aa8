/** An output that a client posts for a held call is stored before the call ends: no process finds its end without the output. */

import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { FermataError } from "../../src/errors.ts";
import { eventually } from "../support/eventually.ts";
import { finish } from "./fake-services.ts";
import { holds, restartWorld } from "./restart-world.ts";

const call = { id: "call_1", name: "list_files", arguments: "{}" };
const served = restartWorld([finish("stop")]);
const { send } = served;

/** The id of a response that waits for the call's output. */
async function waiting(): Promise<string> {
  served.world.chat.script = holds([call]);
  const { body } = await send("POST", "/v1/responses", {
    input: "What is here?",
    tools: [{ type: "function", name: "list_files", parameters: { type: "object" } }],
    background: true,
    fermata: { tools: "held" },
  });
  const held = `SELECT next FROM response_holds WHERE response_id = '${body.id}' AND next > 2`;
  await eventually(async () => expect(await served.query(held)).toHaveLength(1));
  return body.id;
}

const answer = (id: string, output: string) =>
  send("POST", `/v1/responses/${id}/tool_outputs`, { tool_call_id: call.id, output });

async function endsOfCalls(id: string): Promise<number> {
  const events = await served.query<{ body: string }>(
    `SELECT body FROM response_events WHERE response_id = '${id}'`,
  );
  const types = events.map(({ body }) => (JSON.parse(body) as { type: string }).type);
  return types.filter((type) => type === "response.output_item.done").length;
}

const statusOf = async (id: string): Promise<string> =>
  (await send("GET", `/v1/responses/${id}`)).body.status;

test("a call ends once its output is stored", async () => {
  const id = await waiting();
  const { store } = served;
  const update = store.responses.update.bind(store.responses);
  let release = (): void => {};
  const slow = new Promise<void>((resolve) => (release = resolve));
  store.responses.update = async (...response) => {
    await slow;
    await update(...response);
  };
  const posted = answer(id, "a b");
  await setTimeout(100);
  expect(await endsOfCalls(id)).toBe(0);
  release();
  expect((await posted).status).toBe(200);
  await eventually(async () => expect(await statusOf(id)).toBe("completed"));
  expect(await endsOfCalls(id)).toBeGreaterThan(0);
});

test("an output that cannot be stored did not come, and may be sent again", async () => {
  const id = await waiting();
  const { store } = served;
  const update = store.responses.update.bind(store.responses);
  store.responses.update = async () => {
    throw new FermataError("store_unavailable", "The disk is full.");
  };
  expect((await answer(id, "lost")).status).toBe(503);
  store.responses.update = update;
  expect(await statusOf(id)).toBe("in_progress");
  expect((await answer(id, "a b")).status).toBe(200);
  await eventually(async () => expect(await statusOf(id)).toBe("completed"));
  expect(served.world.chat.outputs).toMatchObject([[{ content: "a b" }]]);
});
