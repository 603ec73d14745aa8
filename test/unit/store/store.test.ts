// What every store does, whichever database it is in.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { NewResponse, StoredItem } from "../../../src/store/types.ts";
import { storeKinds, type StoreWorld, storeWorld } from "../../support/store-worlds.ts";

describe.each(storeKinds)("%s", (kind) => {
  let world: StoreWorld;
  let store: Awaited<ReturnType<StoreWorld["open"]>>;

  beforeEach(async () => {
    world = await storeWorld(kind);
    store = await world.open();
  });

  afterEach(async () => {
    await store.close();
    await world.remove();
  });

  function said(id: string, role: string, text: string): StoredItem {
    const type = role === "assistant" ? "output_text" : "input_text";
    return { id, type: "message", status: "completed", role, content: [{ type, text }] };
  }

  function response(id: string, parts: Partial<NewResponse> = {}): NewResponse {
    return {
      id,
      owner: "ann",
      createdAt: Math.floor(Date.now() / 1000),
      previousResponseId: null,
      conversationId: null,
      body: { id, status: "in_progress" },
      input: [],
      ...parts,
    };
  }

  async function turn(id: string, parts: Partial<NewResponse>, answer: string): Promise<void> {
    await store.responses.create(response(id, parts));
    const output = [said(`msg_of_${id}`, "assistant", answer)];
    await store.responses.update("ann", id, { id, status: "completed" }, output);
  }

  function texts(items: readonly StoredItem[]): string[] {
    return items.map((item) => (item["content"] as { text: string }[])[0]!.text);
  }

  async function count(table: string): Promise<number> {
    const [row] = await world.query<{ n: unknown }>(`SELECT count(*) AS n FROM ${table}`);
    return Number(row!.n);
  }

  describe("responses", () => {
    test("a chain's history is what came before, in order, and survives the middle's deletion", async () => {
      await turn("r1", { input: [said("m1", "user", "one")] }, "1");
      await turn("r2", { previousResponseId: "r1", input: [said("m2", "user", "two")] }, "2");
      await turn("r3", { previousResponseId: "r2", input: [said("m3", "user", "three")] }, "3");
      expect(await store.responses.delete("ann", "r2")).toBe(true);
      const items = await store.responses.items("ann", "r3");
      expect(texts(items!.history)).toEqual(["one", "1", "two", "2"]);
      expect(texts(items!.input)).toEqual(["three"]);
      expect(texts(items!.output)).toEqual(["3"]);
      expect(await store.responses.find("ann", "r2")).toBeNull();
    });

    test("a history that is replayed, with ids or without, is stored once", async () => {
      await turn("r1", { input: [said("m1", "user", "one")] }, "1");
      // As a client sends it back: parts without annotations, no id, or its own order of keys.
      const replay = [said("other", "user", "one"), said("msg_of_r1", "assistant", "1")];
      await turn("r2", { input: [...replay, said("m2", "user", "two")] }, "2");
      const items = await store.responses.items("ann", "r2");
      expect(items!.input.map(({ id }) => id)).toEqual(["m1", "msg_of_r1", "m2"]);
      expect(await count("items")).toBe(4);
    });

    test("what is said twice in one history has two ids", async () => {
      const input = [said("a", "user", "yes"), said("b", "user", "yes")];
      await store.responses.create(response("r1", { input }));
      await store.responses.create(
        response("r2", { input: input.map((i) => ({ ...i, id: `x${i.id}` })) }),
      );
      const items = await store.responses.items("ann", "r2");
      expect(items!.input.map(({ id }) => id)).toEqual(["a", "b"]);
    });

    test("an edited item under a known id does not change what was stored", async () => {
      await turn("r1", { input: [said("m1", "user", "one")] }, "1");
      await turn("r2", { input: [said("m1", "user", "forged")] }, "2");
      expect(texts((await store.responses.items("ann", "r1"))!.input)).toEqual(["one"]);
      const [forged] = (await store.responses.items("ann", "r2"))!.input;
      expect(forged!.id).not.toBe("m1");
      expect(texts([forged!])).toEqual(["forged"]);
    });

    test("another owner finds nothing", async () => {
      await turn("r1", { input: [said("m1", "user", "one")] }, "1");
      expect(await store.responses.find("bob", "r1")).toBeNull();
      expect(await store.responses.items("bob", "r1")).toBeNull();
      expect(await store.responses.item("bob", "m1")).toBeNull();
      expect(await store.responses.delete("bob", "r1")).toBe(false);
      expect(await store.responses.item("ann", "m1")).toMatchObject({ id: "m1" });
    });

    test("deleting the only one that refers to an item deletes the item", async () => {
      await turn("r1", { input: [said("m1", "user", "one")] }, "1");
      await turn("r2", { input: [said("m1", "user", "one")] }, "2");
      await store.responses.delete("ann", "r1");
      expect(await store.responses.item("ann", "m1")).not.toBeNull();
      expect(await store.responses.item("ann", "msg_of_r1")).toBeNull();
      await store.responses.delete("ann", "r2");
      expect(await count("items")).toBe(0);
      expect(await count("response_items")).toBe(0);
    });
  });

  test("a history that says the same thousands of times is kept item by item, once", async () => {
    const again = (prefix: string) =>
      Array.from({ length: 5000 }, (_, index) => said(`${prefix}${index}`, "user", "again"));
    await turn("r1", { input: again("a") }, "1");
    expect((await store.responses.items("ann", "r1"))!.input).toHaveLength(5000);
    expect(await count("items")).toBe(5001);
    await turn("r2", { input: again("b") }, "2");
    expect((await store.responses.items("ann", "r2"))!.input).toHaveLength(5000);
    expect(await count("items")).toBe(5002);
  });

  describe("conversations", () => {
    test("a response adds its turn, and the next one sees it", async () => {
      await store.conversations.create("ann", { id: "c", createdAt: 1, metadata: { a: "b" } });
      await store.conversations.add("ann", "c", [said("m0", "user", "zero")]);
      await turn("r1", { conversationId: "c", input: [said("m1", "user", "one")] }, "1");
      await store.conversations.addResponse("ann", "r1");
      await store.responses.create(response("r2", { conversationId: "c" }));
      expect(texts((await store.responses.items("ann", "r2"))!.history)).toEqual([
        "zero",
        "one",
        "1",
      ]);
      expect(await store.conversations.deleteItem("ann", "c", "m1")).toBe(true);
      expect(texts((await store.conversations.items("ann", "c"))!)).toEqual(["zero", "1"]);
      expect(await store.conversations.find("bob", "c")).toBeNull();
      expect(await store.conversations.delete("ann", "c")).toBe(true);
      expect(await store.conversations.items("ann", "c")).toBeNull();
    });

    test("an item that is deleted from the last one that has it leaves no text behind", async () => {
      const secret = said("m1", "user", "secret");
      for (const id of ["c", "d"]) {
        await store.conversations.create("ann", { id, createdAt: 1, metadata: {} });
        await store.conversations.add("ann", id, [said("m0", "user", "zero"), secret]);
      }
      const bodies = async () =>
        (await world.query<{ body: string }>("SELECT body FROM items")).map(({ body }) => body);
      expect(await store.conversations.deleteItem("ann", "c", "m1")).toBe(true);
      expect(await bodies()).toContainEqual(expect.stringContaining("secret"));
      expect(await store.conversations.deleteItem("ann", "d", "m1")).toBe(true);
      expect(await bodies()).toEqual([expect.stringContaining("zero")]);
    });
  });

  describe("limits", () => {
    async function reopen(limits: object): Promise<string[]> {
      await store.close();
      store = await world.open({ limits });
      const rows = await world.query<{ id: string }>(
        "SELECT id FROM responses ORDER BY created_at, id",
      );
      return rows.map(({ id }) => id);
    }

    test("count: the oldest go", async () => {
      for (const id of ["r1", "r2", "r3"]) await turn(id, {}, id);
      expect(await reopen({ maxCount: 2 })).toEqual(["r2", "r3"]);
      expect(await count("items")).toBe(2);
    });

    test("count: of each owner, so that nobody's go for another's", async () => {
      await store.responses.create(response("bob's", { owner: "bob", createdAt: 1_900_000_000 }));
      await store.responses.update("bob", "bob's", { status: "completed" }, []);
      for (const id of ["r1", "r2", "r3"]) await turn(id, { createdAt: 2_000_000_000 }, id);
      expect(await reopen({ maxCount: 1 })).toEqual(["bob's", "r3"]);
    });

    test("bytes: of whoever keeps the most, responses and conversations by their age", async () => {
      await store.responses.create(response("bob's", { owner: "bob", createdAt: 1_900_000_000 }));
      await store.responses.update("bob", "bob's", { status: "completed" }, [
        said("m_bob", "assistant", "x".repeat(20_000)),
      ]);
      await store.conversations.create("ann", { id: "ann's", createdAt: 0, metadata: {} });
      const items = [said("m_ann", "user", "y".repeat(900_000))];
      await store.conversations.add("ann", "ann's", items);
      for (let i = 0; i < 5; i++) await turn(`r${i}`, { createdAt: 2_000_000_000 + i }, `${i}`);
      expect(await reopen({ maxBytes: 600_000 })).toContain("bob's");
      expect(await store.conversations.find("ann", "ann's")).toBeNull();
    });

    test("bytes: of few large entries before many small ones", async () => {
      for (let i = 0; i < 40; i++) {
        const id = `r${i}`;
        await store.responses.create(response(id, { owner: "bob", createdAt: 1_900_000_000 }));
        const output = [said(`m${i}`, "assistant", `${i}`)];
        await store.responses.update("bob", id, { status: "completed" }, output);
      }
      await store.conversations.create("ann", { id: "ann's", createdAt: 0, metadata: {} });
      const items = [said("m_ann", "user", "y".repeat(900_000))];
      await store.conversations.add("ann", "ann's", items);
      expect(await reopen({ maxBytes: 600_000 })).toHaveLength(40);
      expect(await store.conversations.find("ann", "ann's")).toBeNull();
    });

    test("events of what has ended are pruned after a day", async () => {
      for (const id of ["old", "new"]) {
        const createdAt = Math.floor(Date.now() / 1000) - (id === "old" ? 2 * 24 * 3600 : 0);
        await turn(id, { createdAt }, id);
        await store.responses.appendEvents(id, [{ number: 0, body: JSON.stringify({ type: id }) }]);
      }
      await reopen({});
      expect(await store.responses.events("ann", "old")).toEqual([]);
      expect(await store.responses.events("ann", "new")).toEqual([{ type: "new" }]);
      expect((await store.responses.items("ann", "old"))!.output).toHaveLength(1);
    });

    test("age", async () => {
      await turn("old", { createdAt: 1000 }, "old");
      await turn("new", {}, "new");
      expect(await reopen({ maxAgeSeconds: 60 })).toEqual(["new"]);
    });

    describe("a clock that jumps", () => {
      const year = 365 * 24 * 3600_000;
      beforeEach(async () => {
        vi.useFakeTimers({ toFake: ["Date", "performance"] });
        await reopen({});
        await turn("old", { createdAt: Math.floor(Date.now() / 1000) }, "old");
      });
      afterEach(() => vi.useRealTimers());
      // Limits are kept now and then.
      const many = async (name: string): Promise<void> => {
        const createdAt = Math.floor(Date.now() / 1000);
        const body = { status: "completed" };
        for (let i = 0; i < 200; i++)
          await store.responses.create(response(`${name} ${i}`, { createdAt, body }));
        await world.retained(store);
      };

      test.each([year, -year])("by %d: nothing is too old, until it stays so", async (jump) => {
        vi.setSystemTime(Date.now() + jump);
        await many("jumped");
        vi.setSystemTime(Date.now() - jump);
        await many("back");
        expect(await store.responses.find("ann", "old")).not.toBeNull();
        vi.setSystemTime(Date.now() + Math.abs(jump));
        await many("again");
        expect(await store.responses.find("ann", "old")).not.toBeNull();
        vi.advanceTimersByTime(25 * 3600_000);
        await many("believed");
        expect(await store.responses.find("ann", "old")).toBeNull();
        expect(await store.responses.find("ann", "believed 0")).not.toBeNull();
      });

      test("what was stored while it was behind is too old for the next process", async () => {
        vi.setSystemTime(Date.now() - year);
        const createdAt = Math.floor(Date.now() / 1000);
        await turn("behind", { createdAt }, "behind");
        vi.setSystemTime(Date.now() + year);
        expect(await reopen({})).toEqual(["old"]);
      });

      test("a process that starts while it is ahead deletes what looks too old", async () => {
        vi.setSystemTime(Date.now() + year);
        expect(await reopen({})).toEqual([]);
      });
    });

    test("bytes", async () => {
      for (let i = 0; i < 40; i++) await turn(`r${i}`, {}, "x".repeat(20_000));
      const left = await reopen({ maxBytes: 600_000 });
      // About 24 fit; at most ten more than need be have gone.
      expect(left.length).toBeGreaterThan(13);
      expect(left.length).toBeLessThan(25);
      expect(left.at(-1)).toBe("r39");
    });
  });

  describe("the end of a process", () => {
    test("what it left unfinished is failed, what it finished is there", async () => {
      const gone = await world.open();
      await gone.responses.create(response("done"));
      await gone.responses.update("ann", "done", { status: "completed" }, []);
      await gone.responses.create(response("half"));
      const said1 = { ...said("m1", "assistant", "Hel"), status: "in_progress" };
      await gone.responses.update("ann", "half", { status: "in_progress" }, [said1]);
      await gone.responses.create(response("waits"));
      const round = { tokens: [1, 2] };
      const request = { input: "Hi" };
      const hold = { owner: "ann", id: "waits", request, round, next: 7, deadline: 8 };
      await gone.responses.setHold(hold);
      await gone.responses.create(response("waited"));
      await gone.responses.setHold({ ...hold, id: "waited" });
      await gone.responses.update("ann", "waited", { status: "completed" }, []);
      expect(await store.responses.takeHolds()).toEqual([]);
      // As if it were another process, which ended.
      await world.die();

      expect((await store.responses.find("ann", "done"))!.body).toMatchObject({
        status: "completed",
      });
      expect((await store.responses.find("ann", "half"))!.body).toMatchObject({
        status: "failed",
        error: { code: "server_error" },
      });
      expect((await store.responses.items("ann", "half"))!.output).toMatchObject([
        { status: "incomplete" },
      ]);
      // What waits for its client goes on, in the first process that takes it.
      expect(await store.responses.takeHolds()).toEqual([{ ...hold, resumes: 0 }]);
      expect(await store.responses.takeHolds()).toEqual([]);
      expect((await store.responses.find("ann", "waits"))!.body).toMatchObject({
        status: "in_progress",
      });
    });

    test("events are there as far as they came", async () => {
      await store.responses.create(response("r1"));
      const event = (number: number) => ({ number, body: JSON.stringify({ type: `e${number}` }) });
      for (const some of [[event(0)], [event(1), event(2)]])
        await store.responses.appendEvents("r1", some);
      await store.responses.appendEvents("none", [event(0)]);
      expect(await store.responses.events("ann", "r1")).toEqual([
        { type: "e0" },
        { type: "e1" },
        { type: "e2" },
      ]);
      expect(await store.responses.events("bob", "r1")).toEqual([]);
      await store.responses.delete("ann", "r1");
      expect(await count("response_events")).toBe(0);
    });

    test("what a call has come to is written by the one who knew what it was", async () => {
      await store.responses.create(response("r1"));
      const [asked, started] = [{ at: "asked" }, { at: "started" }];
      expect(await store.responses.setHeldCall("r1", "call_1", asked)).toBe(true);
      expect(await store.responses.setHeldCall("r1", "call_1", started, asked)).toBe(true);
      expect(await store.responses.setHeldCall("r1", "call_1", started, asked)).toBe(false);
      expect(await store.responses.heldCall("ann", "call_1")).toEqual({
        responseId: "r1",
        state: started,
      });
    });

    test("another process that lives keeps what it works on", async () => {
      await store.responses.create(response("r1"));
      const other = await world.open();
      expect((await other.responses.find("ann", "r1"))!.body).toMatchObject({
        status: "in_progress",
      });
      await other.close();
    });
  });
});
