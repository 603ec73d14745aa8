/** An answer of another server's model that is being written when the process ends: nobody knows its tokens, so it ends. */

import Database from "libsql";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AgentDirectory } from "../../src/agents/agent-directory.ts";
import { parseAgentsConfig } from "../../src/agents/agents-config.ts";
import { defaultSampling } from "../../src/cli/model-files.ts";
import { SqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { eventually } from "../support/eventually.ts";
import { chunk, type FakeEndpoint, silent, startFakeEndpoint } from "../support/fake-endpoint.ts";
import { createWorld, FakeChat, type World } from "./fake-services.ts";
import { eventsOf, type Json } from "./responses-world.ts";
import { ended } from "./ended-run.ts";
import { begin, copyOf, forgetProcesses, storeFolder } from "./written-world.ts";

const at = storeFolder();
let fake: FakeEndpoint;
beforeEach(async () => {
  fake = await startFakeEndpoint(
    silent(chunk({ reasoning_content: "Hm." }), chunk({ content: "From afar:" })),
  );
});
afterEach(() => fake.close());

async function serve(path: string): Promise<{ world: World; end(): Promise<void> }> {
  const store = new SqliteStore(path);
  const chat = new FakeChat();
  const far = { description: "Far", endpoint: { url: fake.url, model: "large" } };
  const agents = new AgentDirectory(
    parseAgentsConfig({ supervisor: "far", agents: { far } }, "agents.json", {}),
    {
      served: { chat, contextSize: 1000, vocabularySize: 500, sampling: defaultSampling },
      files: new Map(),
      tools: null,
    },
  );
  const world = createWorld({ chat, agents, store, branches: store.branches });
  await world.app.ready();
  const end = async (): Promise<void> => {
    await world.app.close();
    await store.close();
  };
  return { world, end };
}

/** The next server, on the store as it was once its events had the text. */
async function killedBehind(
  first: Awaited<ReturnType<typeof serve>>,
  events: string,
): Promise<Awaited<ReturnType<typeof serve>>> {
  const copy = await eventually(() => {
    const database = new Database(at("store.sqlite"));
    const rows = database.prepare(`SELECT body FROM ${events}`).all() as { body: string }[];
    database.close();
    expect(rows.map(({ body }) => body).join()).toContain("From afar:");
    return copyOf(at("store.sqlite"), "copy.sqlite");
  });
  await first.end();
  forgetProcesses(copy);
  return await serve(copy);
}

test("a run of a conversation is failed, with its text so far and the reason", async () => {
  const first = await serve(at("store.sqlite"));
  const run = await begin(first.world, "Hi", { model: "far" });
  const next = await killedBehind(first, "branched_events");
  const { message, state } = await ended(next.world, run);
  await next.end();
  expect(message).toMatchObject({
    status: "failed",
    message: "From afar:",
    reasoning: "Hm.",
    error: {
      code: "engine_crashed",
      message: "The server ended before the answer did. Ask again.",
    },
  });
  expect(state).toMatchObject({ message: "From afar:", end: { status: "failed" } });
  // Nobody asked the other server once more.
  expect(fake.requests).toHaveLength(1);
});

test("a background response, too", async () => {
  const first = await serve(at("store.sqlite"));
  const payload = { model: "far", input: "Hi", background: true };
  const created = await first.world.app.inject({ method: "POST", url: "/v1/responses", payload });
  const url = `/v1/responses/${(created.json() as Json).id}`;
  const next = await killedBehind(first, "response_events");
  const response = await eventually(async () => {
    const now = (await next.world.app.inject({ url })).json() as Json;
    expect(now.status).toBe("failed");
    return now;
  });
  const events = eventsOf((await next.world.app.inject({ url: `${url}?stream=true` })).body);
  await next.end();
  expect(response.error.message).toContain("The server ended before the answer did.");
  expect(response.output).toMatchObject([
    { type: "reasoning", status: "completed", content: [{ text: "Hm." }] },
    { type: "message", status: "incomplete", content: [{ text: "From afar:" }] },
  ]);
  expect(events.at(-1)).toMatchObject({ type: "response.failed", response });
  expect(fake.requests).toHaveLength(1);
});
