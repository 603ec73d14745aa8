import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { StoreDatabase } from "../../../src/store/sqlite/database.ts";
import { SqliteStore } from "../../../src/store/sqlite/sqlite-store.ts";
import type { NewResponse, StoredItem } from "../../../src/store/types.ts";

let folder: string;
let path: string;
let store: SqliteStore;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fermata-store-"));
  path = join(folder, "deeper", "store.sqlite");
  store = new SqliteStore(path);
});

afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
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
  await store.createResponse(response(id, parts));
  const output = [said(`msg_of_${id}`, "assistant", answer)];
  await store.updateResponse("ann", id, { id, status: "completed" }, output);
}

function texts(items: readonly StoredItem[]): string[] {
  return items.map((item) => (item["content"] as { text: string }[])[0]!.text);
}

function count(table: string): number {
  const database = new Database(path);
  const { n } = database.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number };
  database.close();
  return n;
}

describe("responses", () => {
  test("a chain's history is what came before, in order, and survives the middle's deletion", async () => {
    await turn("r1", { input: [said("m1", "user", "one")] }, "1");
    await turn("r2", { previousResponseId: "r1", input: [said("m2", "user", "two")] }, "2");
    await turn("r3", { previousResponseId: "r2", input: [said("m3", "user", "three")] }, "3");
    expect(await store.deleteResponse("ann", "r2")).toBe(true);
    const items = await store.responseItems("ann", "r3");
    expect(texts(items!.history)).toEqual(["one", "1", "two", "2"]);
    expect(texts(items!.input)).toEqual(["three"]);
    expect(texts(items!.output)).toEqual(["3"]);
    expect(await store.response("ann", "r2")).toBeNull();
  });

  test("a history that is replayed, with ids or without, is stored once", async () => {
    await turn("r1", { input: [said("m1", "user", "one")] }, "1");
    // As a client sends it back: parts without annotations, no id, or its own order of keys.
    const replay = [said("other", "user", "one"), said("msg_of_r1", "assistant", "1")];
    await turn("r2", { input: [...replay, said("m2", "user", "two")] }, "2");
    const items = await store.responseItems("ann", "r2");
    expect(items!.input.map(({ id }) => id)).toEqual(["m1", "msg_of_r1", "m2"]);
    expect(count("items")).toBe(4);
  });

  test("what is said twice in one history has two ids", async () => {
    const input = [said("a", "user", "yes"), said("b", "user", "yes")];
    await store.createResponse(response("r1", { input }));
    await store.createResponse(
      response("r2", { input: input.map((i) => ({ ...i, id: `x${i.id}` })) }),
    );
    const items = await store.responseItems("ann", "r2");
    expect(items!.input.map(({ id }) => id)).toEqual(["a", "b"]);
  });

  test("an edited item under a known id does not change what was stored", async () => {
    await turn("r1", { input: [said("m1", "user", "one")] }, "1");
    await turn("r2", { input: [said("m1", "user", "forged")] }, "2");
    expect(texts((await store.responseItems("ann", "r1"))!.input)).toEqual(["one"]);
    const [forged] = (await store.responseItems("ann", "r2"))!.input;
    expect(forged!.id).not.toBe("m1");
    expect(texts([forged!])).toEqual(["forged"]);
  });

  test("another owner finds nothing", async () => {
    await turn("r1", { input: [said("m1", "user", "one")] }, "1");
    expect(await store.response("bob", "r1")).toBeNull();
    expect(await store.responseItems("bob", "r1")).toBeNull();
    expect(await store.item("bob", "m1")).toBeNull();
    expect(await store.deleteResponse("bob", "r1")).toBe(false);
    expect(await store.item("ann", "m1")).toMatchObject({ id: "m1" });
  });

  test("deleting the only one that refers to an item deletes the item", async () => {
    await turn("r1", { input: [said("m1", "user", "one")] }, "1");
    await turn("r2", { input: [said("m1", "user", "one")] }, "2");
    await store.deleteResponse("ann", "r1");
    expect(await store.item("ann", "m1")).not.toBeNull();
    expect(await store.item("ann", "msg_of_r1")).toBeNull();
    await store.deleteResponse("ann", "r2");
    expect(count("items")).toBe(0);
    expect(count("response_items")).toBe(0);
  });
});

test("a history that says the same thousands of times is kept item by item, once", async () => {
  const again = (prefix: string) =>
    Array.from({ length: 5000 }, (_, index) => said(`${prefix}${index}`, "user", "again"));
  await turn("r1", { input: again("a") }, "1");
  expect((await store.responseItems("ann", "r1"))!.input).toHaveLength(5000);
  expect(count("items")).toBe(5001);
  await turn("r2", { input: again("b") }, "2");
  expect((await store.responseItems("ann", "r2"))!.input).toHaveLength(5000);
  expect(count("items")).toBe(5002);
});

describe("conversations", () => {
  test("a response adds its turn, and the next one sees it", async () => {
    await store.createConversation("ann", { id: "c", createdAt: 1, metadata: { a: "b" } });
    await store.addConversationItems("ann", "c", [said("m0", "user", "zero")]);
    await turn("r1", { conversationId: "c", input: [said("m1", "user", "one")] }, "1");
    await store.appendToConversation("ann", "r1");
    await store.createResponse(response("r2", { conversationId: "c" }));
    expect(texts((await store.responseItems("ann", "r2"))!.history)).toEqual(["zero", "one", "1"]);
    expect(await store.deleteConversationItem("ann", "c", "m1")).toBe(true);
    expect(texts((await store.conversationItems("ann", "c"))!)).toEqual(["zero", "1"]);
    expect(await store.conversation("bob", "c")).toBeNull();
    expect(await store.deleteConversation("ann", "c")).toBe(true);
    expect(await store.conversationItems("ann", "c")).toBeNull();
  });
});

describe("limits", () => {
  async function reopen(limits: object): Promise<string[]> {
    await store.close();
    store = new SqliteStore(path, { limits });
    const database = new Database(path);
    const rows = database.prepare("SELECT id FROM responses ORDER BY rowid").all() as {
      id: string;
    }[];
    database.close();
    return rows.map(({ id }) => id);
  }

  test("count: the oldest go", async () => {
    for (const id of ["r1", "r2", "r3"]) await turn(id, {}, id);
    expect(await reopen({ maxCount: 2 })).toEqual(["r2", "r3"]);
    expect(count("items")).toBe(2);
  });

  test("count: of each owner, so that nobody's go for another's", async () => {
    await store.createResponse(response("bob's", { owner: "bob", createdAt: 1_900_000_000 }));
    await store.updateResponse("bob", "bob's", { status: "completed" }, []);
    for (const id of ["r1", "r2", "r3"]) await turn(id, { createdAt: 2_000_000_000 }, id);
    expect(await reopen({ maxCount: 1 })).toEqual(["bob's", "r3"]);
  });

  test("bytes: of whoever keeps the most, responses and conversations by their age", async () => {
    await store.createResponse(response("bob's", { owner: "bob", createdAt: 1_900_000_000 }));
    await store.updateResponse("bob", "bob's", { status: "completed" }, [
      said("m_bob", "assistant", "x".repeat(20_000)),
    ]);
    await store.createConversation("ann", { id: "ann's", createdAt: 0, metadata: {} });
    const items = [said("m_ann", "user", "y".repeat(900_000))];
    await store.addConversationItems("ann", "ann's", items);
    for (let i = 0; i < 5; i++) await turn(`r${i}`, { createdAt: 2_000_000_000 + i }, `${i}`);
    expect(await reopen({ maxBytes: 600_000 })).toContain("bob's");
    expect(await store.conversation("ann", "ann's")).toBeNull();
  });

  test("events of what has ended are pruned after a day", async () => {
    for (const id of ["old", "new"]) {
      const createdAt = Math.floor(Date.now() / 1000) - (id === "old" ? 2 * 24 * 3600 : 0);
      await turn(id, { createdAt }, id);
      await store.addEvent(id, 0, { type: id });
    }
    await reopen({});
    expect(await store.events("ann", "old")).toEqual([]);
    expect(await store.events("ann", "new")).toEqual([{ type: "new" }]);
    expect((await store.responseItems("ann", "old"))!.output).toHaveLength(1);
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
      for (let i = 0; i < 200; i++) await turn(`${name} ${i}`, { createdAt }, "x");
    };

    test.each([year, -year])("by %d: nothing is too old, until it stays so", async (jump) => {
      vi.setSystemTime(Date.now() + jump);
      await many("jumped");
      vi.setSystemTime(Date.now() - jump);
      await many("back");
      expect(await store.response("ann", "old")).not.toBeNull();
      vi.setSystemTime(Date.now() + Math.abs(jump));
      await many("again");
      expect(await store.response("ann", "old")).not.toBeNull();
      vi.advanceTimersByTime(25 * 3600_000);
      await many("believed");
      expect(await store.response("ann", "old")).toBeNull();
      expect(await store.response("ann", "believed 0")).not.toBeNull();
    });
  });

  test("bytes", async () => {
    for (let i = 0; i < 40; i++) await turn(`r${i}`, {}, "x".repeat(20_000));
    const left = await reopen({ maxBytes: 600_000 });
    expect(left.length).toBeGreaterThan(10);
    expect(left.length).toBeLessThan(25);
    expect(left.at(-1)).toBe("r39");
  });
});

describe("the end of a process", () => {
  test("what it left unfinished is failed, what it finished is there", async () => {
    const gone = new SqliteStore(path);
    await gone.createResponse(response("done"));
    await gone.updateResponse("ann", "done", { status: "completed" }, []);
    await gone.createResponse(response("half"));
    const said1 = { ...said("m1", "assistant", "Hel"), status: "in_progress" };
    await gone.updateResponse("ann", "half", { status: "in_progress" }, [said1]);
    await gone.createResponse(response("waits"));
    const round = { tokens: [1, 2] };
    const request = { input: "Hi" };
    const hold = { owner: "ann", id: "waits", request, round, next: 7, deadline: 8 };
    await gone.setHold(hold);
    await gone.createResponse(response("waited"));
    await gone.setHold({ ...hold, id: "waited" });
    await gone.updateResponse("ann", "waited", { status: "completed" }, []);
    expect(await store.takeHolds()).toEqual([]);
    // As if it were another process, which ended.
    const { pid } = spawnSync(process.execPath, ["--version"]);
    const database = new Database(path);
    database
      .prepare("UPDATE runs SET pid = ?, id = 'gone' WHERE id IN (SELECT run FROM responses)")
      .run(pid);
    database.prepare("UPDATE responses SET run = 'gone' WHERE run IS NOT NULL").run();
    database.close();

    expect((await store.response("ann", "done"))!.body).toMatchObject({ status: "completed" });
    expect((await store.response("ann", "half"))!.body).toMatchObject({
      status: "failed",
      error: { code: "server_error" },
    });
    expect((await store.responseItems("ann", "half"))!.output).toMatchObject([
      { status: "incomplete" },
    ]);
    // What waits for its client goes on, in the first process that takes it.
    expect(await store.takeHolds()).toEqual([hold]);
    expect(await store.takeHolds()).toEqual([]);
    expect((await store.response("ann", "waits"))!.body).toMatchObject({ status: "in_progress" });
  });

  test("events are there as far as they came", async () => {
    await store.createResponse(response("r1"));
    for (const number of [0, 1, 2]) await store.addEvent("r1", number, { type: `e${number}` });
    await store.addEvent("none", 0, {});
    expect(await store.events("ann", "r1")).toEqual([
      { type: "e0" },
      { type: "e1" },
      { type: "e2" },
    ]);
    expect(await store.events("bob", "r1")).toEqual([]);
    await store.deleteResponse("ann", "r1");
    expect(count("response_events")).toBe(0);
  });

  test("another process that lives keeps what it works on", async () => {
    await store.createResponse(response("r1"));
    const other = new SqliteStore(path);
    expect((await other.response("ann", "r1"))!.body).toMatchObject({ status: "in_progress" });
    await other.close();
  });
});

test("what fails in a transaction that the database gave up is told, not its rollback", async () => {
  const database = new Database(path);
  database.exec(
    "CREATE TRIGGER full BEFORE INSERT ON responses BEGIN SELECT RAISE(ROLLBACK, 'the disk is full'); END",
  );
  database.close();
  await expect(store.createResponse(response("r1"))).rejects.toThrow("the disk is full");
});

test("the first cause is told where the rollback fails too", () => {
  const fakeDatabase = {
    inTransaction: true,
    exec(sql: string) {
      if (sql === "ROLLBACK") throw new Error("disk I/O error");
    },
  } as unknown as Database.Database;
  const work = (): never => {
    throw new Error("the disk is full");
  };
  expect(() => new StoreDatabase(fakeDatabase).inTransaction(work)).toThrow("the disk is full");
});

describe("an end that cannot be written", () => {
  const full = (table: string): Database.Database => {
    const database = new Database(path);
    database.exec(
      `CREATE TRIGGER full BEFORE UPDATE ON ${table} BEGIN SELECT RAISE(ABORT, 'the disk is full'); END`,
    );
    return database;
  };
  const signOfLifeMs = 10_000;

  beforeEach(async () => {
    vi.useFakeTimers();
    await store.close();
    store = new SqliteStore(path);
  });
  afterEach(() => vi.useRealTimers());

  test("of a response is written once there is room", async () => {
    await store.createResponse(response("r1"));
    const database = full("responses");
    const ended = { id: "r1", status: "completed" };
    await expect(store.updateResponse("ann", "r1", ended, [])).rejects.toThrow("the disk is full");
    vi.advanceTimersByTime(signOfLifeMs);
    expect((await store.response("ann", "r1"))?.body).not.toEqual(ended);
    database.exec("DROP TRIGGER full");
    database.close();
    vi.advanceTimersByTime(signOfLifeMs);
    expect((await store.response("ann", "r1"))?.body).toEqual(ended);
  });

  test("of a conversation's run, and of one that was deleted meanwhile", async () => {
    const { branches } = store;
    const message = { parentId: null, createdAt: Date.now(), body: { status: "running" } };
    for (const name of ["a", "b"]) {
      const times = { createdAt: Date.now(), updatedAt: Date.now() };
      await branches.createConversation("ann", {
        ...times,
        id: `conv_${name}`,
        title: "",
        leafId: null,
        settings: {},
      });
      const run = { id: `run_${name}`, conversationId: `conv_${name}`, messageId: `msg_${name}` };
      const messages = [{ ...message, id: run.messageId, runId: run.id }];
      await branches.beginRun("ann", run, messages, {});
    }
    const database = full("branched_runs");
    for (const name of ["a", "b"]) {
      const end = { id: `msg_${name}`, body: { status: "complete" } };
      const last = [{ number: 1, body: "{}" }];
      await expect(branches.endRun(`run_${name}`, end, last)).rejects.toThrow("the disk is full");
    }
    await branches.deleteConversation("ann", "conv_a");
    database.exec("DROP TRIGGER full");
    database.close();
    vi.advanceTimersByTime(signOfLifeMs);
    expect((await branches.messages("ann", "conv_b"))[0]?.body).toEqual({ status: "complete" });
    expect(await branches.runEvents("run_b", 0)).toEqual([{ number: 1, body: "{}" }]);
    expect(await branches.messages("ann", "conv_a")).toEqual([]);
  });
});

// Elsewhere the system does not tell when a process began.
describe.runIf(process.platform === "linux")("another process of this machine", () => {
  let other: ChildProcess;
  beforeEach(() => {
    other = spawn("sleep", ["600"], { stdio: "ignore" });
  });
  afterEach(() => other.kill("SIGKILL"));

  /** As if it had opened the file and begun its response, and shown no sign of life since. */
  async function work(began = beganAt(other.pid!)): Promise<void> {
    const owned = new SqliteStore(path);
    await owned.createResponse(response("r1"));
    const database = new Database(path);
    database
      .prepare(
        "UPDATE runs SET id = 'other', pid = ?, began = ?, seen_at = 1 WHERE id = (SELECT run FROM responses)",
      )
      .run(other.pid!, began);
    database.exec("UPDATE responses SET run = 'other'");
    database.close();
  }

  test("keeps what it works on while it stands still, or clocks jump", async () => {
    await work();
    expect((await store.response("ann", "r1"))!.body).toMatchObject({ status: "in_progress" });
  });

  test("is another one, if it began at another time", async () => {
    await work("1");
    expect((await store.response("ann", "r1"))!.body).toMatchObject({ status: "failed" });
  });

  test("has the file for itself", async () => {
    await work();
    expect(() => new SqliteStore(path)).toThrow(
      `The store ${path} is in use by process ${other.pid}. Stop that server, or give this one another --store.`,
    );
    other.kill("SIGKILL");
    await once(other, "exit");
    await new SqliteStore(path).close();
  });
});

/** In the system's ticks since it started. */
function beganAt(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]!;
}

test("a process that was taken for dead is known again after its next sign of life", async () => {
  vi.useFakeTimers({ toFake: ["setInterval"] });
  const paused = new SqliteStore(path);
  const before = count("runs");
  const database = new Database(path);
  database.exec("DELETE FROM runs");
  database.close();
  vi.advanceTimersByTime(10_000);
  vi.useRealTimers();
  expect(before).toBe(2);
  expect(count("runs")).toBe(1);
  await paused.close();
});

test("a file of the first version keeps its events", async () => {
  await store.createResponse(response("r1"));
  await store.close();
  const database = new Database(path);
  database.exec("DROP TABLE response_events");
  database.exec("ALTER TABLE responses ADD COLUMN events TEXT");
  const later = ["holds", "events", "runs", "messages", "conversations"].map(
    (name) => `branched_${name}`,
  );
  for (const table of [...later, "held_calls", "secrets", "response_holds"])
    database.exec(`DROP TABLE ${table}`);
  database.exec("DROP TRIGGER held_calls_of_response");
  for (const column of ["place", "began"]) database.exec(`ALTER TABLE runs DROP COLUMN ${column}`);
  database.prepare("UPDATE responses SET events = ?").run('[{"type":"a"},{"type":"b","n":1}]');
  database.exec("PRAGMA user_version = 1");
  database.close();
  store = new SqliteStore(path);
  expect(await store.events("ann", "r1")).toEqual([{ type: "a" }, { type: "b", n: 1 }]);
});

test("the file is the user's alone", () => {
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("a file that is no store is refused, and stays as it is", () => {
  const other = join(folder, "notes.txt");
  writeFileSync(other, "not a database, but a long enough text to look like a file".repeat(20));
  expect(() => new SqliteStore(other)).toThrow(/cannot be used/);
});
