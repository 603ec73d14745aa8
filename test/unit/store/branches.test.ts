import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SqliteStore } from "../../../src/store/sqlite/sqlite-store.ts";
import { storeKinds, type StoreWorld, storeWorld } from "../../support/store-worlds.ts";
import type {
  BranchedConversation,
  BranchedMessage,
  BranchStore,
} from "../../../src/store/types.ts";

function conversation(id: string, at = Date.now()): BranchedConversation {
  return { id, title: "", createdAt: at, updatedAt: at, leafId: null, settings: { model: null } };
}

function message(id: string, parentId: string | null, runId: string | null): BranchedMessage {
  return { id, parentId, createdAt: Date.now(), runId, body: { text: id } };
}

async function beginRun(store: BranchStore, id: string, run: string): Promise<void> {
  const messages = [message(`q${run}`, null, null), message(`a${run}`, `q${run}`, run)];
  const start = { id: run, conversationId: id, messageId: `a${run}` };
  await store.beginRun("ann", { ...start, request: "asked" }, messages, {
    leafId: `a${run}`,
    title: "T",
  });
}

describe.each([...storeKinds, "memory"] as const)("%s", (kind) => {
  let world: StoreWorld | null;
  let store: BranchStore;
  let opened: { close(): Promise<void> };

  beforeEach(async () => {
    world = kind === "memory" ? null : await storeWorld(kind);
    const file = (await world?.open()) ?? new SqliteStore(null);
    opened = file;
    store = file.branches;
  });
  afterEach(async () => {
    await opened.close();
    await world?.remove();
  });

  test("what a call has come to is known to its owner, until its run ends", async () => {
    await store.createConversation("ann", conversation("c"));
    await beginRun(store, "c", "r");
    const at = (callId: string, owner = "ann") => store.callOfRun(owner, callId);
    expect(await at("call_1")).toBe(null);
    await store.setHeldCall("r", "call_1", { at: "asked", since: 1, mayHaveRun: false });
    await store.setHeldCall("r", "call_2/1/call_3", { at: "asked", since: 1, mayHaveRun: false });
    await store.setHeldCall("r", "call_2", { at: "delegated" });
    expect(await Promise.all([at("call_1"), at("call_2"), at("call_3")])).toEqual([
      "asked",
      "past",
      "asked",
    ]);
    expect(await Promise.all([at("call_1", "bob"), at("all_1"), at("call_4")])).toEqual([
      null,
      null,
      null,
    ]);
    await store.setHeldCall("r", "call_1", { at: "started" });
    expect(await at("call_1")).toBe("past");
    // The sub-agent was given up while its call waited: nobody asks about that again.
    await store.setHeldCall("r", "call_2", { at: "ended", run: {} });
    expect(await at("call_3")).toBe(null);
    await store.endRun("r", { id: "ar", body: {} }, []);
    expect(await Promise.all([at("call_1"), at("call_3")])).toEqual([null, null]);
  });

  test("a run: its messages, its events, its end", async () => {
    await store.createConversation("ann", conversation("c"));
    await beginRun(store, "c", "r");
    expect(await store.conversation("ann", "c")).toMatchObject({ leafId: "ar", title: "T" });
    expect((await store.messages("ann", "c")).map(({ id }) => id)).toEqual(["qr", "ar"]);
    await store.appendEvents("r", [{ number: 1, body: "one" }]);
    await store.appendEvents("r", [{ number: 2, body: "two" }]);
    await store.endRun("r", { id: "ar", body: { text: "said" } }, [{ number: 3, body: "end" }]);
    expect(await store.runEvents("r", 1)).toEqual([
      { number: 2, body: "two" },
      { number: 3, body: "end" },
    ]);
    expect((await store.messages("ann", "c"))[1]!.body).toEqual({ text: "said" });
    expect(await store.run("ann", "c", "r")).toEqual({
      id: "r",
      conversationId: "c",
      messageId: "ar",
    });
    expect(await store.takeInterrupted()).toEqual([]);
  });

  test("another owner sees, changes and deletes nothing", async () => {
    await store.createConversation("ann", conversation("c"));
    await beginRun(store, "c", "r");
    expect(await store.conversation("bob", "c")).toBeNull();
    expect(await store.messages("bob", "c")).toEqual([]);
    expect(await store.run("bob", "c", "r")).toBeNull();
    expect(await store.conversations("bob", { limit: 9, before: null })).toEqual([]);
    expect(await store.changeConversation("bob", "c", { title: "x" }, 1)).toBe(false);
    expect(await store.deleteConversation("bob", "c")).toBe(false);
    expect(await store.conversation("ann", "c")).toMatchObject({ title: "T" });
  });

  test("what goes with a conversation, and what comes after its end", async () => {
    await store.createConversation("ann", conversation("c"));
    await beginRun(store, "c", "r");
    await store.appendEvents("r", [{ number: 1, body: "one" }]);
    expect(await store.deleteConversation("ann", "c")).toBe(true);
    expect(await store.deleteConversation("ann", "c")).toBe(false);
    expect(await store.runEvents("r", 0)).toEqual([]);
    await store.endRun("r", { id: "ar", body: {} }, [{ number: 2, body: "end" }]);
    expect(await store.runEvents("r", 0)).toEqual([]);
  });

  test("pages do not lose those that changed in the same millisecond", async () => {
    const ids = Array.from({ length: 7 }, (_, index) => `c${index}`);
    for (const id of ids) await store.createConversation("ann", conversation(id, 1000));
    const seen: string[] = [];
    for (let before: string | null = null; ;) {
      const page = await store.conversations("ann", { limit: 3, before });
      if (page.length === 0) break;
      seen.push(...page.map(({ id }) => id));
      before = page.at(-1)!.id;
    }
    expect(seen).toEqual(ids.toReversed());
  });
});

describe.each(storeKinds)("processes that share a store: %s", (kind) => {
  let world: StoreWorld;
  let file: Awaited<ReturnType<StoreWorld["open"]>>;
  beforeEach(async () => {
    world = await storeWorld(kind);
    file = await world.open();
  });
  afterEach(async () => {
    await file.close();
    await world.remove();
  });

  test("a run whose process is gone is given to one caller, with how far it came", async () => {
    const other = await world.open();
    await other.branches.createConversation("ann", conversation("c"));
    await beginRun(other.branches, "c", "r");
    await other.branches.appendEvents("r", [{ number: 1, body: "one" }]);
    // Another process that lives keeps what it works on.
    expect(await file.branches.takeInterrupted()).toEqual([]);
    await world.die();
    expect(await file.branches.takeInterrupted()).toMatchObject([
      {
        id: "r",
        conversationId: "c",
        messageId: "ar",
        owner: "ann",
        events: [{ number: 1, body: "one" }],
      },
    ]);
    expect(await file.branches.takeInterrupted()).toEqual([]);
    // It only stood still, and ends its run now: the run is no longer its own.
    await other.branches.endRun("r", { id: "ar", body: { text: "late" } }, []);
    expect((await file.branches.messages("ann", "c")).at(-1)!.body).toEqual({ text: "ar" });
    await other.close();
  });

  test("runs that cannot be read now are left to the next look", async () => {
    const other = await world.open();
    await other.branches.createConversation("ann", conversation("c"));
    for (const id of ["r1", "r2"]) await beginRun(other.branches, "c", id);
    await world.die();
    await world.query("ALTER TABLE branched_events RENAME TO away");
    await expect(file.branches.takeInterrupted()).rejects.toThrow("branched_events");
    await world.query("ALTER TABLE away RENAME TO branched_events");
    const taken = await file.branches.takeInterrupted();
    expect(taken.map(({ id }) => id).toSorted()).toEqual(["r1", "r2"]);
    await other.close();
  });

  test("limits: what is old goes, what is being written stays", async () => {
    const day = 24 * 3600 * 1000;
    const { branches } = file;
    await branches.createConversation("ann", conversation("old", Date.now() - 40 * day));
    await branches.createConversation("ann", conversation("written", Date.now() - 40 * day));
    await branches.createConversation("ann", conversation("new"));
    await beginRun(branches, "written", "r");
    await world.query("UPDATE branched_conversations SET updated_at = 1 WHERE id = 'written'");
    const second = await world.open();
    const left = await second.branches.conversations("ann", { limit: 9, before: null });
    expect(left.map(({ id }) => id)).toEqual(["new", "written"]);
    await second.close();
    const third = await world.open({ limits: { maxBytes: 1 } });
    const least = await third.branches.conversations("ann", { limit: 9, before: null });
    expect(least.map(({ id }) => id)).toEqual(["written"]);
    await third.close();
  });

  test("events of what ended over a day ago go, a run at work keeps its own", async () => {
    const { branches } = file;
    await branches.createConversation("ann", conversation("c"));
    for (const id of ["old", "new", "working"]) {
      await beginRun(branches, "c", id);
      await branches.appendEvents(id, [{ number: 1, body: id }]);
      if (id !== "working") await branches.endRun(id, { id: `a${id}`, body: { text: id } }, []);
    }
    const before = Date.now() - 2 * 24 * 3600 * 1000;
    await world.query(
      `UPDATE branched_messages SET created_at = ${before} WHERE id IN ('aold', 'aworking')`,
    );
    const second = await world.open();
    expect(await second.branches.runEvents("old", 0)).toEqual([]);
    expect(await second.branches.runEvents("new", 0)).toEqual([{ number: 1, body: "new" }]);
    expect(await second.branches.runEvents("working", 0)).toEqual([{ number: 1, body: "working" }]);
    expect(await second.branches.messages("ann", "c")).toHaveLength(6);
    await second.close();
  });

  test("a secret is made once", async () => {
    const second = await world.open();
    expect(await file.secret("tokens")).toHaveLength(32);
    expect(await second.secret("tokens")).toEqual(await file.secret("tokens"));
    expect(await second.secret("other")).not.toEqual(await file.secret("tokens"));
    await second.close();
  });
});
