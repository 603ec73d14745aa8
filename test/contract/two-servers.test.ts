/** Two servers of one database: what is asked of one is done by the other that works on it. */

import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ToolCall } from "../../src/chat/types.ts";
import type { Tool } from "../../src/tools/types.ts";
import { eventually } from "../support/eventually.ts";
import { PostgresDatabase } from "../../src/store/postgres/database.ts";
import { storeKinds, type StoreWorld, storeWorld } from "../support/store-worlds.ts";
import { callEvents, createWorld, finish, provider, type World } from "./fake-services.ts";
import type { Json } from "./responses-world.ts";
import { countedTool, holds } from "./restart-world.ts";

const hang = [{ type: "content" as const, text: "Hel" }, { hang: true as const }];

describe.skipIf(!storeKinds.includes("postgres"))("two servers", () => {
  let stored: StoreWorld;
  let ends: (() => Promise<void>)[] = [];
  const stores = new Map<World, Awaited<ReturnType<StoreWorld["open"]>>>();

  async function serve(...tools: Tool[]): Promise<World> {
    const store = await stored.open();
    const parts = { store, branches: store.branches, tools: provider(...tools) };
    const world = createWorld(parts as Parameters<typeof createWorld>[0]);
    await world.app.ready();
    stores.set(world, store);
    ends.push(async () => {
      await world.app.close();
      await store.close();
    });
    return world;
  }

  async function send(
    { app }: World,
    method: "GET" | "POST" | "DELETE",
    url: string,
    payload?: object,
  ): Promise<Json> {
    const reply = await app.inject({ method, url, ...(payload && { payload }) });
    expect(reply.statusCode, reply.body).toBeLessThan(300);
    return reply.body === "" ? null : reply.json();
  }

  beforeEach(async () => {
    stored = await storeWorld("postgres");
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    for (const end of ends) await end();
    ends = [];
    await stored.remove();
  });

  test("a response that is deleted at one ends at the other", async () => {
    const [here, there] = [await serve(), await serve()];
    here.chat.script = hang;
    const { id } = await send(here, "POST", "/v1/responses", { input: "Hi", background: true });
    await send(there, "DELETE", `/v1/responses/${id}`);
    expect(here.chat.cancelledCount).toBe(1);
    expect((await here.app.inject({ url: `/v1/responses/${id}` })).statusCode).toBe(404);
  });

  test("a reader that left is read for no more", async () => {
    const [here, there] = [await serve(), await serve()];
    here.chat.script = hang;
    const { id } = await send(here, "POST", "/v1/responses", { input: "Hi", background: true });
    const url = await there.app.listen({ port: 0 });
    const gone = new AbortController();
    const closed = once(there.app.server, "connection").then(([socket]) => once(socket, "close"));
    const reading = await fetch(`${url}/v1/responses/${id}?stream=true`, { signal: gone.signal });
    await reading.body!.getReader().read();
    gone.abort();
    await closed;
    const reads = vi.spyOn(stores.get(there)!.responses, "events");
    // Who follows looks once a second, whatever it is told.
    await setTimeout(1500);
    expect(reads).not.toHaveBeenCalled();
  });

  test("a run whose conversation is deleted at one ends at the other", async () => {
    const [here, there] = [await serve(), await serve()];
    here.chat.script = hang;
    const { id } = await send(here, "POST", "/api/conversations", {});
    await send(here, "POST", `/api/conversations/${id}/runs`, { message: "Hi" });
    await send(there, "DELETE", `/api/conversations/${id}`);
    expect(here.chat.cancelledCount).toBe(1);
  });

  test("a consent that both get at once runs its call once", async () => {
    const ran: string[] = [];
    const save: Tool = {
      definition: { name: "save", parameters: { type: "object" } },
      server: "files",
      async call() {
        ran.push("save");
        return { content: "done", isError: false };
      },
    };
    const [here, there] = [await serve(save), await serve(save)];
    const call: ToolCall = { id: "call_1", name: "save", arguments: "{}" };
    const tools = [{ type: "mcp", server_label: "files", require_approval: "always" }];
    for (let count = 1; count <= 3; count++) {
      here.chat.script = [...callEvents(call), finish("tool_calls", [call])];
      const asked = await send(here, "POST", "/v1/responses", { input: "Save.", tools });
      here.chat.script = there.chat.script;
      const { id } = asked.output.find(({ type }: Json) => type === "mcp_approval_request");
      const consent = { type: "mcp_approval_response", approval_request_id: id, approve: true };
      const body = { previous_response_id: asked.id, input: [consent], tools };
      const answers = await Promise.all(
        [here, there].map((one) => send(one, "POST", "/v1/responses", body)),
      );
      expect(answers.map(({ status }) => status)).toEqual(["completed", "completed"]);
      await eventually(() => expect(ran).toHaveLength(count));
    }
  });

  test("a decision is handed on when its taker dies, and does not answer what the next one asks", async () => {
    const ran: string[] = [];
    const save = (hangs: boolean): Tool => countedTool(ran, "save", { approval: "always", hangs });
    const [here, there] = [await serve(save(true)), await serve(save(false))];
    here.chat.script = holds([{ id: "call_1", name: "save", arguments: "{}" }]);
    there.chat.script = [{ type: "content", text: "Saved." }, finish("stop")];
    const { id } = await send(here, "POST", "/api/conversations", {});
    await send(here, "POST", `/api/conversations/${id}/runs`, { message: "Save." });
    const asked = (): Promise<Json> =>
      eventually(async () => {
        const { approvals } = await send(there, "GET", "/api/approvals");
        expect(approvals).toHaveLength(1);
        return approvals[0];
      });
    const decide = (askingId: string) =>
      there.app.inject({
        method: "POST",
        url: "/api/approvals/call_1",
        payload: { decision: "approve", asking_id: askingId },
      });
    const { asking_id: first } = await asked();

    // It takes the decision, and its tool runs; its answer to the other server is never written.
    const { run } = PostgresDatabase.prototype;
    vi.spyOn(PostgresDatabase.prototype, "run").mockImplementation(async function (
      this: PostgresDatabase,
      query,
    ) {
      const isAnswer = query.text.join("?").startsWith("UPDATE fermata.deliveries SET answer");
      return isAnswer ? await new Promise<number>(() => {}) : await run.call(this, query);
    });
    const reply = decide(first);
    await eventually(() => expect(ran).toEqual(["save"]));
    vi.restoreAllMocks();
    await ends.shift()!();

    const refused = await reply;
    expect(refused.statusCode).toBe(409);
    expect(refused.json()).toMatchObject({ error: { code: "asked_again" } });
    const again = await asked();
    expect(again).toMatchObject({ call_id: "call_1", may_have_run: true });
    expect(ran).toEqual(["save"]);
    expect((await decide(again.asking_id)).statusCode).toBe(200);
    await eventually(async () => {
      const { messages } = await send(there, "GET", `/api/conversations/${id}`);
      expect(messages.at(-1)).toMatchObject({ status: "complete" });
    });
    expect(ran).toEqual(["save", "save"]);
  });
});
