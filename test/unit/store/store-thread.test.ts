// The store that a server opens, on its thread. Needs `npm run build`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openStore } from "../../../src/cli/load-services.ts";
import { serveConfig } from "../../support/serve-config.ts";

type Store = NonNullable<Awaited<ReturnType<typeof openStore>>>;

const note = (): void => {};
let folder: string;
let path: string;
let store: Store;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "fermata-thread-"));
  path = join(folder, "store.sqlite");
  store = await open();
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(): Promise<Store> {
  const config = serveConfig([`--store=${path}`], {}, folder);
  return (await openStore(config, { warn: note, error: note }))!;
}

const items = Array.from({ length: 10_000 }, (_, index) => ({
  id: `msg_${index}`,
  type: "message",
  role: "user",
  content: [{ type: "input_text", text: `What was said in turn ${index}` }],
}));

const response = (id: string, previous: string | null = null) => ({
  id,
  owner: "ann",
  createdAt: Math.floor(Date.now() / 1000),
  previousResponseId: previous,
  conversationId: null,
  body: { id, status: "completed" },
});

/** How often other work had its turn meanwhile. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await work();
  isOver = true;
  return turns;
}

test("streams have their turn while 10,000 items are written, read and deleted", async () => {
  const works = [
    () => store.responses.create({ ...response("r1"), input: items }),
    () => store.responses.create({ ...response("r2", "r1"), input: [] }),
    () => store.responses.items("ann", "r2"),
    () => store.responses.delete("ann", "r1"),
    () => store.responses.delete("ann", "r2"),
  ];
  for (const work of works) expect(await turnsDuring(work)).toBeGreaterThan(20);
});

test("and while another process has the file", async () => {
  const other = new Database(path);
  other.exec("BEGIN IMMEDIATE");
  const written = store.responses.create({ ...response("r1"), input: [] });
  const turns = await turnsDuring(() => new Promise((resolve) => setTimeout(resolve, 50)));
  expect(turns).toBeGreaterThan(20);
  other.exec("COMMIT");
  other.close();
  await written;
  expect(await store.responses.find("ann", "r1")).toMatchObject({ id: "r1" });
});

test("what was said comes back as it was, in the order of the calls", async () => {
  const calls = [
    store.responses.create({ ...response("r1"), input: items.slice(0, 2) }),
    store.responses.update("ann", "r1", { id: "r1", status: "completed" }, items.slice(2, 3)),
    store.responses.items("ann", "r1"),
    store.branches.conversations("ann", { limit: 5, before: null }),
  ] as const;
  expect((await Promise.all(calls)).slice(2)).toEqual([
    { history: [], input: items.slice(0, 2), output: items.slice(2, 3) },
    [],
  ]);
});

test("errors keep what they say; the store goes on", async () => {
  const database = new Database(path);
  database.exec(
    "CREATE TRIGGER full BEFORE INSERT ON responses BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
  );
  await expect(store.responses.create({ ...response("r1"), input: [] })).rejects.toThrow(
    "the disk is full",
  );
  database.exec("DROP TRIGGER full");
  database.close();
  await store.responses.create({ ...response("r1"), input: [] });
  await expect(open()).rejects.toMatchObject({ code: "store_in_use", param: "store" });
});

test("closed twice; then it says so", async () => {
  await Promise.all([store.close(), store.close()]);
  await expect(store.responses.find("ann", "r1")).rejects.toMatchObject({ code: "engine_closed" });
  store = await open();
});
