/** While a server drains, what its running requests wait for is taken: outputs of held calls and decisions of persons. */

import { afterEach, expect, test } from "vitest";
import { Approvals } from "../../src/tools/approvals.ts";
import { eventually } from "../support/eventually.ts";
import { callEvents, finish, provider } from "./fake-services.ts";
import { usage } from "./fake-figures.ts";
import { createResponsesWorld, type ResponsesWorld } from "./responses-world.ts";

const call = { id: "call_1", name: "list_files", arguments: "{}" };
const script = [
  ...callEvents(call),
  { type: "hold" as const, calls: [call], usage },
  { type: "content" as const, text: "There is a.txt." },
  finish("stop"),
];
let world: ResponsesWorld;
let url: string;

afterEach(() => world.close());

async function serve(parts: Parameters<typeof createResponsesWorld>[0] = {}): Promise<void> {
  world = await createResponsesWorld({ config: { drainMs: 60_000 }, ...parts });
  world.chat.script = script;
  url = await world.app.listen({ port: 0, host: "127.0.0.1" });
}

async function draining(): Promise<{ closed: Promise<void> }> {
  const closed = world.app.close().then(() => {});
  await eventually(async () => expect((await fetch(`${url}/v1/models`)).status).toBe(503));
  return { closed };
}

async function send(path: string, body: object): Promise<number> {
  const headers = { "content-type": "application/json" };
  const reply = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  return reply.status;
}

const statusOf = async (id: string): Promise<unknown> =>
  (await world.store.responses.find("anonymous", id))?.body["status"];

test("the output of a held call", async () => {
  await serve();
  const { body } = await world.create({
    input: "Which files?",
    tools: [{ type: "function", name: "list_files", parameters: { type: "object" } }],
    background: true,
    fermata: { tools: "held" },
  });
  await eventually(() => expect(world.chat.requests).toHaveLength(1));
  const { closed } = await draining();
  const path = `/v1/responses/${body.id}/tool_outputs`;
  const output = { tool_call_id: call.id, output: "a.txt" };
  await eventually(async () => expect(await send(path, output)).toBe(200));
  await closed;
  expect(await statusOf(body.id)).toBe("completed");
});

test("a person's decision", async () => {
  const tool = {
    definition: { name: "list_files", parameters: { type: "object" } },
    server: "files",
    approval: "always" as const,
    call: async () => ({ content: "a.txt", isError: false }),
  };
  await serve({ tools: provider(tool), approvals: new Approvals() });
  const { body } = await world.create({ input: "Which files?", background: true });
  const { closed } = await draining();
  await eventually(async () => {
    const { approvals } = (await (await fetch(`${url}/api/approvals`)).json()) as {
      approvals?: object[];
    };
    expect(approvals).toHaveLength(1);
  });
  expect(await send(`/api/approvals/${call.id}`, { decision: "approve" })).toBe(200);
  await closed;
  expect(await statusOf(body.id)).toBe("completed");
});
