/** An answer of the model that ships is cut by the end of its process: the next one goes on behind its tokens. */

import { expect, test } from "vitest";
import { Chat } from "../../src/chat/chat.ts";
import { SqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { createWorld, provider, type World } from "../contract/fake-services.ts";
import type { Json } from "../contract/responses-world.ts";
import { countedTool } from "../contract/restart-world.ts";
import { copyOf, forgetProcesses, storeFolder } from "../contract/written-world.ts";
import { eventually } from "../support/eventually.ts";
import { hasMasks } from "../support/masks.ts";
import { engineOfTests } from "../support/watched-engine.ts";

const currentEngine = engineOfTests({ contextSize: 4096 });
const at = storeFolder();

/** A server with one tool and the store at the path, while `work` lasts. */
async function served<Result>(
  path: string,
  toolName: string,
  work: (world: World, store: SqliteStore) => Promise<Result>,
): Promise<Result> {
  const store = new SqliteStore(path);
  const world = createWorld({
    realChat: new Chat(currentEngine()),
    tools: provider(countedTool([], toolName, { readOnly: true })),
    store,
    branches: store.branches,
  });
  await world.app.ready();
  try {
    return await work(world, store);
  } finally {
    await world.app.close();
    await store.close();
  }
}

interface Cut {
  id: string;
  /** What the whole answer was. */
  whole: Json;
  /** The store once the first event with the text was in it. */
  copy: string;
}

/** A background response whose server ends once its events have this text. */
async function cutAt(text: string, request: object): Promise<Cut> {
  const path = at("store.sqlite");
  let copy = "";
  let told = "";
  return await served(path, "get_weather", async (world, store) => {
    const append = store.responses.appendEvents.bind(store.responses);
    store.responses.appendEvents = async (...values) => {
      await append(...values);
      told += values[1].map(({ body }) => body).join();
      if (copy === "" && told.includes(text)) copy = copyOf(path, "copy.sqlite");
    };
    const payload = { background: true, ...request };
    const reply = await world.app.inject({ method: "POST", url: "/v1/responses", payload });
    const { id } = reply.json() as Json;
    const whole = await ended(world, id);
    expect(copy).not.toBe("");
    forgetProcesses(copy);
    return { id, whole, copy };
  });
}

async function ended({ app }: World, id: string): Promise<Json> {
  return await eventually(async () => {
    const response = (await app.inject({ url: `/v1/responses/${id}` })).json() as Json;
    expect(["queued", "in_progress"]).not.toContain(response.status);
    return response;
  });
}

const asking = {
  input: "What's the weather in Tokyo?",
  temperature: 0,
  max_output_tokens: 60,
  tools: [{ type: "mcp", server_label: "files", require_approval: "never" }],
};

test.runIf(hasMasks)(
  "a call of a tool that is no longer there: failed, with the reason",
  async () => {
    const { id, whole, copy } = await cutAt('"type":"mcp_call"', asking);
    expect(whole.error).toBeNull();
    const response = await served(copy, "send_mail", (world) => ended(world, id));
    expect(response).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining("does not fit the model or its tools any more") },
    });
  },
);

test("the limit and the usage are of the whole answer; behind the stored tokens random numbers begin anew", async () => {
  const request = { input: "Hello!", temperature: 1.5, seed: 5, max_output_tokens: 80 };
  const { id, whole, copy } = await cutAt("output_text.delta", { ...request, ignore_eos: true });
  const response = await served(copy, "get_weather", (world) => ended(world, id));
  for (const { status, usage } of [whole, response]) {
    expect(status).toBe("incomplete");
    expect(usage.output_tokens).toBe(80);
  }
  const text = ({ output }: Json): string => output.at(-1).content[0].text as string;
  expect(text(response)[0]).toBe(text(whole)[0]);
  expect(text(response)).not.toBe(text(whole));
});
