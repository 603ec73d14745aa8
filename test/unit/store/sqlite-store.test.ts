import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { SqliteDatabase } from "../../../src/store/sqlite/database.ts";
import { SqliteStore } from "../../../src/store/sqlite/sqlite-store.ts";
import type { NewResponse } from "../../../src/store/types.ts";

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

function count(table: string): number {
  const database = new Database(path);
  const { n } = database.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number };
  database.close();
  return n;
}

test("what fails in a transaction that the database gave up is told, not its rollback", async () => {
  const database = new Database(path);
  database.exec(
    "CREATE TRIGGER full BEFORE INSERT ON responses BEGIN SELECT RAISE(ROLLBACK, 'the disk is full'); END",
  );
  database.close();
  await expect(store.responses.create(response("r1"))).rejects.toThrow("the disk is full");
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
  expect(() => new SqliteDatabase(fakeDatabase).inTransaction(work)).toThrow("the disk is full");
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
    await store.responses.create(response("r1"));
    const database = full("responses");
    const ended = { id: "r1", status: "completed" };
    await expect(store.responses.update("ann", "r1", ended, [])).rejects.toThrow(
      "the disk is full",
    );
    await vi.advanceTimersByTimeAsync(signOfLifeMs);
    expect((await store.responses.find("ann", "r1"))?.body).not.toEqual(ended);
    database.exec("DROP TRIGGER full");
    database.close();
    await vi.advanceTimersByTimeAsync(signOfLifeMs);
    expect((await store.responses.find("ann", "r1"))?.body).toEqual(ended);
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
      await branches.beginRun("ann", { ...run, request: null }, messages, {});
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
    await vi.advanceTimersByTimeAsync(signOfLifeMs);
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
    await owned.responses.create(response("r1"));
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
    expect((await store.responses.find("ann", "r1"))!.body).toMatchObject({
      status: "in_progress",
    });
  });

  test("is another one, if it began at another time", async () => {
    await work("1");
    expect((await store.responses.find("ann", "r1"))!.body).toMatchObject({ status: "failed" });
  });

  test.each([
    ["another host", (place: string) => place.replace(/^\S*/, "elsewhere")],
    ["before this machine's last start", (place: string) => place.replace(/ \S+ /, " boot ")],
  ])("of %s, its number says nothing: it counts as gone once it is silent", async (_, placed) => {
    await work();
    const place = (seenAt: number): void => {
      const database = new Database(path);
      const own = database.prepare("SELECT place FROM runs WHERE id <> 'other'").get();
      database
        .prepare("UPDATE runs SET place = ?, seen_at = ? WHERE id = 'other'")
        .run(placed((own as { place: string }).place), seenAt);
      database.close();
    };
    place(Math.floor(Date.now() / 1000));
    expect((await store.responses.find("ann", "r1"))!.body).toMatchObject({
      status: "in_progress",
    });
    // It is not refused, as it would be by a living process of this machine.
    await new SqliteStore(path).close();
    place(1);
    expect((await store.responses.find("ann", "r1"))!.body).toMatchObject({ status: "failed" });
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

test("a file that another process has locked for a moment is waited for at its first opening", async () => {
  const locked = join(folder, "locked.sqlite");
  const program = `
    const database = new (require("libsql"))(process.argv[1]);
    database.exec("CREATE TABLE x (y)");
    database.exec("BEGIN EXCLUSIVE");
    process.stdout.write("locked");
    setTimeout(() => database.exec("COMMIT"), 300);`;
  const holder = spawn(process.execPath, ["-e", program, locked]);
  await once(holder.stdout, "data");
  await new SqliteStore(locked).close();
  await once(holder, "exit");
});

test("a file of the first version keeps its events", async () => {
  await store.responses.create(response("r1"));
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
  expect(await store.responses.events("ann", "r1")).toEqual([{ type: "a" }, { type: "b", n: 1 }]);
});

test("the file is the user's alone", () => {
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("a file that is no store is refused, and stays as it is", () => {
  const other = join(folder, "notes.txt");
  writeFileSync(other, "not a database, but a long enough text to look like a file".repeat(20));
  expect(() => new SqliteStore(other)).toThrow(/cannot be used/);
});
