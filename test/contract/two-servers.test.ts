/** Two servers of one database: what is asked of one is done by the other that works on it. */

import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ToolCall } from "../../src/chat/types.ts";
import { Approvals } from "../../src/tools/approvals.ts";
import type { CallState } from "../../src/tools/oversight.ts";
import type { Tool, ToolProvider } from "../../src/tools/types.ts";
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
  const asking = new Map<World, Approvals>();
  const stores = new Map<World, Awaited<ReturnType<StoreWorld["open"]>>>();

  async function serve(...tools: Tool[]): Promise<World> {
    return await serveTools(provider(...tools));
  }

  async function serveTools(tools: ToolProvider, timeoutMs?: number): Promise<World> {
    const store = await stored.open();
    const approvals = new Approvals({ timeoutMs });
    const parts = { store, branches: store.branches, tools, approvals };
    const world = createWorld(parts as Parameters<typeof createWorld>[0]);
    await world.app.ready();
    stores.set(world, store);
    asking.set(world, approvals);
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
    // What ran here is told from memory until it has ended.
    await eventually(async () => {
      const { statusCode } = await here.app.inject({ url: `/v1/responses/${id}` });
      expect(statusCode).toBe(404);
    });
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

  /** A run of the first server whose call waits for a person; from then on the second one goes on with it. */
  async function takenRun({
    hangs = false,
    timeoutMs,
  }: { hangs?: boolean; timeoutMs?: number } = {}) {
    const ran: string[] = [];
    const save = (where: string): Tool => {
      const tool = countedTool([], "save", { approval: "always", hangs });
      return {
        ...tool,
        async call(...parts) {
          ran.push(where);
          return await tool.call(...parts);
        },
      };
    };
    const here = await serveTools(provider(save("here")), timeoutMs);
    const there = await serve(save("there"));
    here.chat.script = holds([{ id: "call_1", name: "save", arguments: "{}" }]);
    there.chat.script = [{ type: "content", text: "Saved." }, finish("stop")];
    const { id } = await send(here, "POST", "/api/conversations", {});
    await send(here, "POST", `/api/conversations/${id}/runs`, { message: "Save." });
    await eventually(async () => {
      expect((await send(here, "GET", "/api/approvals")).approvals).toHaveLength(1);
    });
    const [row] = await stored.query<{ process: string }>("SELECT process FROM branched_runs");
    await stored.die();
    const ended = (world = there): Promise<void> =>
      eventually(async () => {
        const { messages } = await send(world, "GET", `/api/conversations/${id}`);
        expect(messages.at(-1)).toMatchObject({ status: "complete" });
      });
    await eventually(() => expect(asking.get(there)!.pending()).toHaveLength(1));
    const decide = (world: World, askingId?: string) =>
      world.app.inject({
        method: "POST",
        url: "/api/approvals/call_1",
        payload: { decision: "approve", asking_id: askingId },
      });
    return { here, there, ran, id, ended, decide, process: row!.process };
  }

  test("a server that stood still, and does not know yet that another one asks, takes no decision", async () => {
    const { here, ran, ended, decide } = await takenRun();
    expect(asking.get(here)!.pending()).toHaveLength(1);
    const reply = await decide(here);
    expect([reply.statusCode, reply.body]).toEqual([200, expect.anything()]);
    await ended();
    expect(ran).toEqual(["there"]);
  });

  test("a server that stood still, and knows it, hands a decision on", async () => {
    const { here, there, ran, ended, decide, process } = await takenRun();
    await stored.query(`DELETE FROM processes WHERE id = '${process}'`);
    await eventually(() => expect(asking.get(here)!.pending()).toEqual([]));
    await eventually(async () => {
      for (const world of [here, there])
        expect((await send(world, "GET", "/api/approvals")).approvals).toHaveLength(1);
    });
    expect((await decide(here)).statusCode).toBe(200);
    await ended();
    expect(ran).toEqual(["there"]);
    for (const world of [here, there])
      expect((await decide(world)).json()).toMatchObject({ error: { code: "already_decided" } });
  });

  test("what was decided here and is asked elsewhere since, is decided there", async () => {
    const ran: string[] = [];
    const save = (hangs: boolean): Tool => countedTool(ran, "save", { approval: "always", hangs });
    const [here, there] = [await serve(save(true)), await serve(save(false))];
    here.chat.script = holds([{ id: "call_1", name: "save", arguments: "{}" }]);
    there.chat.script = [{ type: "content", text: "Saved." }, finish("stop")];
    const { id } = await send(here, "POST", "/api/conversations", {});
    await send(here, "POST", `/api/conversations/${id}/runs`, { message: "Save." });
    const decide = async (payload: object) =>
      await here.app.inject({ method: "POST", url: "/api/approvals/call_1", payload });
    await eventually(async () => {
      expect((await decide({ decision: "approve" })).statusCode).toBe(200);
    });
    await eventually(() => expect(ran).toEqual(["save"]));
    await stored.die();
    const { asking_id: askingId } = await eventually(async () => {
      const { approvals } = await send(here, "GET", "/api/approvals");
      expect(approvals).toMatchObject([{ may_have_run: true }]);
      return approvals[0];
    });
    expect((await decide({ decision: "approve", asking_id: askingId })).statusCode).toBe(200);
    await eventually(async () => {
      const { messages } = await send(there, "GET", `/api/conversations/${id}`);
      expect(messages.at(-1)).toMatchObject({ status: "complete" });
    });
    expect(ran).toEqual(["save", "save"]);
  });

  test("a decision whose taker is slow is sent again, and counts", async () => {
    const ran: string[] = [];
    const save = countedTool(ran, "save", { approval: "always" });
    let start = (): void => {};
    const started = new Promise<void>((resolve) => (start = resolve));
    const here = await serve(save);
    const there = await serveTools({ ...provider(save), missing: () => started.then(() => []) });
    here.chat.script = holds([{ id: "call_1", name: "save", arguments: "{}" }]);
    there.chat.script = [{ type: "content", text: "Saved." }, finish("stop")];
    const { id } = await send(here, "POST", "/api/conversations", {});
    await send(here, "POST", `/api/conversations/${id}/runs`, { message: "Save." });
    const { asking_id: askingId } = await eventually(async () => {
      const { approvals } = await send(there, "GET", "/api/approvals");
      expect(approvals).toHaveLength(1);
      return approvals[0];
    });
    await ends.shift()!();
    // Nobody takes it in time.
    const delivering = vi.spyOn(stores.get(there)!.shared!, "deliver").mockResolvedValue(null);
    const decide = () =>
      there.app.inject({
        method: "POST",
        url: "/api/approvals/call_1",
        payload: { decision: "approve", asking_id: askingId },
      });
    const reply = await decide();
    expect([reply.statusCode, reply.json().error.code]).toEqual([503, "engine_closed"]);
    delivering.mockRestore();
    start();
    expect((await decide()).statusCode).toBe(200);
    await eventually(async () => {
      const { messages } = await send(there, "GET", `/api/conversations/${id}`);
      expect(messages.at(-1)).toMatchObject({ status: "complete" });
    });
    expect(ran).toEqual(["save"]);
  });

  test("nobody waits for the question of a server that is gone when its run has ended", async () => {
    const save = countedTool([], "save", { approval: "always" });
    const [here, there] = [await serve(save), await serve(save)];
    here.chat.script = holds([{ id: "call_1", name: "save", arguments: "{}" }]);
    const { id } = await send(here, "POST", "/api/conversations", {});
    const url = `/api/conversations/${id}/runs`;
    const { run_id: run } = await send(here, "POST", url, { message: "Save." });
    await eventually(async () => {
      expect((await send(there, "GET", "/api/approvals")).approvals).toHaveLength(1);
    });
    await stored.query("UPDATE questions SET process = 'gone'");
    await send(here, "POST", `${url}/${run}/cancel`);
    await eventually(async () => {
      const { messages } = await send(there, "GET", `/api/conversations/${id}`);
      expect(messages.at(-1)).toMatchObject({ status: "cancelled" });
    });
    const delivering = vi.spyOn(stores.get(there)!.shared!, "deliver");
    const reply = await there.app.inject({
      method: "POST",
      url: "/api/approvals/call_1",
      payload: { decision: "approve" },
    });
    expect(reply.statusCode).toBe(404);
    expect(delivering).not.toHaveBeenCalled();
  });

  test("a server that stood still does not refuse what answers a question of another one", async () => {
    const { here, there, ran, ended, decide } = await takenRun({ hangs: true });
    expect((await decide(there)).statusCode).toBe(200);
    await eventually(() => expect(ran).toEqual(["there"]));
    const third = await serve(countedTool(ran, "save", { approval: "always" }));
    third.chat.script = there.chat.script;
    await ends.splice(1, 1)[0]!();
    const { asking_id: askingId } = await eventually(async () => {
      const [asked] = asking.get(third)!.pending();
      expect(asked).toMatchObject({ mayHaveRun: true });
      return { asking_id: asked!.askingId };
    });
    expect(asking.get(here)!.pending()).toMatchObject([{ callId: "call_1" }]);
    const reply = await decide(here, askingId);
    expect([reply.statusCode, reply.body]).toEqual([200, expect.anything()]);
    await ended(third);
    expect(ran).toEqual(["there", "save"]);
  });

  test("a question of a tool's server is not answered where its run is another's by now", async () => {
    const answers: string[] = [];
    const look = (asks: boolean): Tool => ({
      ...countedTool([], "look", { readOnly: true }),
      async call(_args, { ask, signal }) {
        if (asks) answers.push((await ask!({ message: "Which?" }, signal)).action);
        return { content: "seen", isError: false };
      },
    });
    const [here, there] = [await serve(look(true)), await serve(look(false))];
    here.chat.script = holds([{ id: "call_1", name: "look", arguments: "{}" }]);
    there.chat.script = [{ type: "content", text: "Seen." }, finish("stop")];
    const { id } = await send(here, "POST", "/api/conversations", {});
    await send(here, "POST", `/api/conversations/${id}/runs`, { message: "Look." });
    await eventually(() => expect(asking.get(here)!.pending()).toHaveLength(1));
    await eventually(async () =>
      expect(await stored.query("SELECT call_id FROM held_calls")).toHaveLength(1),
    );
    await stored.die();
    await eventually(async () => {
      const { messages } = await send(there, "GET", `/api/conversations/${id}`);
      expect(messages.at(-1)).toMatchObject({ status: "complete" });
    });
    const reply = await here.app.inject({
      method: "POST",
      url: "/api/approvals/call_1",
      payload: { decision: "approve" },
    });
    expect(reply.statusCode).toBe(404);
    expect(answers).toEqual(["cancel"]);
  });

  test("viewers of a server that stood still are not told that its run failed", async () => {
    const look = countedTool([], "look", { readOnly: true });
    const [here, there] = [await serve(look), await serve(look)];
    here.chat.script = holds([{ id: "call_1", name: "look", arguments: "{}" }]);
    there.chat.script = [{ type: "content", text: "Seen." }, finish("stop")];
    const complete = (id: string): Promise<void> =>
      eventually(async () => {
        const { messages } = await send(there, "GET", `/api/conversations/${id}`);
        expect(messages.at(-1)).toMatchObject({ status: "complete" });
      });
    const { id } = await send(here, "POST", "/api/conversations", {});
    const { branches } = stores.get(here)!;
    const { setRunHold } = branches;
    // The other one takes the run before the first server writes what its call has come to.
    vi.spyOn(branches, "setRunHold").mockImplementation(async (...held) => {
      await setRunHold.apply(branches, held);
      await stored.die();
      await complete(id);
    });
    await send(here, "POST", `/api/conversations/${id}/runs`, { message: "Look." });
    const viewed = here.app.inject({ url: `/api/conversations/${id}/stream?details=1` });
    await complete(id);
    expect((await viewed).body).not.toContain("failed");
  });

  test("a server that stood still denies nothing when its time is over", async () => {
    const { here, there, ran, id, ended, decide } = await takenRun({ timeoutMs: 8000 });
    const viewed = here.app.inject({ url: `/api/conversations/${id}/stream?details=1` });
    expect(asking.get(here)!.pending()).toHaveLength(1);
    expect((await viewed).body).not.toContain("denied");
    expect(asking.get(here)!.hasDecided("anonymous", "call_1")).toBe(false);
    expect((await decide(there)).statusCode).toBe(200);
    await ended();
    expect(ran).toEqual(["there"]);
  });

  test.each([
    ["", false],
    [", also where its run could not write it down", true],
  ])(
    "a call whose time is over is decided for all, while its round goes on%s",
    async (_what, fails) => {
      const tools = provider(
        countedTool([], "save", { approval: "always" }),
        countedTool([], "look", { approval: "never", hangs: true }),
      );
      const [here, there] = [await serveTools(tools, 1000), await serveTools(tools)];
      const { branches } = stores.get(here)!;
      const { setHeldCall } = branches;
      vi.spyOn(branches, "setHeldCall").mockImplementation(async (run, callId, state) => {
        if (fails && (state as CallState).at === "decided") throw new Error("disk I/O error");
        return await setHeldCall.call(branches, run, callId, state);
      });
      here.chat.script = holds([
        { id: "call_1", name: "save", arguments: "{}" },
        { id: "call_2", name: "look", arguments: "{}" },
      ]);
      const { id } = await send(here, "POST", "/api/conversations", {});
      await send(here, "POST", `/api/conversations/${id}/runs`, { message: "Save." });
      await eventually(() =>
        expect(asking.get(here)!.hasDecided("anonymous", "call_1")).toBe(true),
      );
      await eventually(async () =>
        expect(await stored.query("SELECT call_id FROM questions WHERE is_open")).toEqual([]),
      );
      const reply = await there.app.inject({
        method: "POST",
        url: "/api/approvals/call_1",
        payload: { decision: "approve" },
      });
      expect(reply.json()).toMatchObject({ error: { code: "already_decided" } });
    },
  );

  test("what one closed does not hide that whoever goes on asks again", async () => {
    const [here, there] = [await serve(), await serve()];
    await stores.get(here)!.shared!.openQuestion("ann", "call_1", { callId: "call_1" });
    const state = () => stores.get(there)!.shared!.questionState("ann", "call_1");
    expect(await state()).toMatchObject({ at: "open" });
    await stored.query(`UPDATE questions SET process = 'gone';
      INSERT INTO questions (process, call_id, owner, body, is_open, changed_at)
      SELECT 'other', call_id, owner, body, false, now() + interval '1 minute' FROM questions`);
    expect(await state()).toEqual({ at: "decided" });
    await stored.query(`INSERT INTO branched_conversations (owner, id, title, created_at, updated_at, settings)
        VALUES ('ann', 'c', '', 1, 1, '{}');
      INSERT INTO branched_messages (id, conversation_id, created_at, body) VALUES ('m', 'c', 1, '{}');
      INSERT INTO branched_runs (id, conversation_id, message_id, process) VALUES ('r', 'c', 'm',
        '${stores.get(there)!.shared!.processId}');
      INSERT INTO held_calls VALUES ('r', 'call_1', '{"at":"asked","since":1}')`);
    expect(await state()).toEqual({ at: "left" });
  });

  test("what an earlier Fermata asks has no name: a decision that names a question does not answer it", async () => {
    const ran: string[] = [];
    const save = countedTool(ran, "save", { approval: "always" });
    const [here, there] = [await serve(save), await serve(save)];
    here.chat.script = holds([{ id: "call_1", name: "save", arguments: "{}" }]);
    const { id } = await send(here, "POST", "/api/conversations", {});
    await send(here, "POST", `/api/conversations/${id}/runs`, { message: "Save." });
    const list = async (): Promise<Json> =>
      (await send(there, "GET", "/api/approvals")).approvals as Json;
    const { asking_id: named } = await eventually(async () => {
      const approvals = await list();
      expect(approvals).toHaveLength(1);
      return approvals[0];
    });
    await stored.query("UPDATE questions SET body = (body::jsonb - 'askingId')::text");
    expect((await list())[0]).not.toHaveProperty("asking_id");
    const decide = (payload: object) =>
      there.app.inject({ method: "POST", url: "/api/approvals/call_1", payload });
    const refused = await decide({ decision: "approve", asking_id: named });
    expect(refused.json()).toMatchObject({ error: { code: "asked_again" } });
    expect(ran).toEqual([]);
    expect((await decide({ decision: "approve" })).statusCode).toBe(200);
    await eventually(() => expect(ran).toEqual(["save"]));
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
