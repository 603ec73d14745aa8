import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { openStore } from "../../../src/cli/load-services.ts";
import { runCommandLine } from "../../../src/cli/run.ts";
import { SqliteStore } from "../../../src/store/sqlite/sqlite-store.ts";
import { serveConfig } from "../../support/serve-config.ts";

/** Retention keeps what is young. */
const now = Math.floor(Date.now() / 1000);
let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fermata-store-"));
  path = join(folder, "fermata", "store.sqlite");
});

async function run(...args: string[]) {
  let out = "";
  let err = "";
  const code = await runCommandLine(["store", ...args], {
    cwd: folder,
    env: { XDG_DATA_HOME: folder },
    out: (text) => (out += text),
    err: (text) => (err += text),
  });
  return { code, out, err };
}

const item = (id: string, text: string) => ({
  id,
  type: "message",
  role: "user",
  content: [{ type: "input_text", text }],
});

async function fill(): Promise<SqliteStore> {
  const store = new SqliteStore(path);
  const response = { id: "resp_1", owner: "ann", createdAt: now };
  await store.responses.create({
    ...response,
    previousResponseId: null,
    conversationId: null,
    body: { id: "resp_1", status: "completed" },
    input: [item("msg_1", "Hi")],
  });
  const body = { id: "resp_1", status: "completed" };
  await store.responses.update("ann", "resp_1", body, [item("msg_2", "Hello.")]);
  await store.conversations.create("bob", { id: "conv_1", createdAt: now, metadata: { a: "b" } });
  await store.conversations.add("bob", "conv_1", [item("msg_3", "x".repeat(100_000))]);
  await store.branches.createConversation("ann", {
    id: "conv_2",
    title: "Talk",
    createdAt: now * 1000,
    updatedAt: now * 1000,
    leafId: null,
    settings: { tools: [] },
  });
  return store;
}

/** Bytes in the middle of the file, which SQLite wrote and no longer knows. */
async function breakFile(): Promise<Buffer> {
  await (await fill()).close();
  // One file: the store's last changes are beside it.
  await run("backup", "whole.sqlite");
  const bytes = readFileSync(join(folder, "whole.sqlite"));
  rmSync(join(folder, "fermata"), { recursive: true });
  mkdirSync(join(folder, "fermata"));
  bytes.fill(0xab, 4096 * 3, 4096 * 8);
  writeFileSync(path, bytes);
  return bytes;
}

describe("check", () => {
  test("a sound store, beside its server", async () => {
    const store = await fill();
    expect(await run("check")).toEqual({ code: 0, out: `${path} is sound.\n`, err: "" });
    await store.close();
  });

  test("a broken one: exit code 1, and nothing changes", async () => {
    const bytes = await breakFile();
    const { code, out } = await run("check");
    expect(code).toBe(1);
    expect(out).toContain(`${path} is broken:\n  `);
    expect(readFileSync(path)).toEqual(bytes);
  });

  test("a file that is no store", async () => {
    const file = join(folder, "text.sqlite");
    writeFileSync(file, "Not a database, and longer than the header of one.".repeat(100));
    expect(await run("check", "--store", file)).toMatchObject({ code: 1 });
  });

  test("set aside: its name is told, nothing is lost, the next store is new", async () => {
    const bytes = await breakFile();
    for (const count of [1, 2]) {
      const { code, out } = await run("check", "--set-aside");
      expect(code).toBe(1);
      expect(out).toContain(`It is now ${path}.broken-${count}.\n`);
      expect(readFileSync(`${path}.broken-${count}`)).toEqual(bytes);
      expect(readdirSync(join(folder, "fermata"))).not.toContain("store.sqlite");
      await new SqliteStore(path).close();
      expect(await run("check")).toMatchObject({ code: 0 });
      for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
      writeFileSync(path, bytes);
    }
  });

  test("a sound store is not set aside", async () => {
    await (await fill()).close();
    expect(await run("check", "--set-aside")).toMatchObject({ code: 0 });
    expect(readdirSync(join(folder, "fermata"))).toContain("store.sqlite");
  });
});

describe("backup", () => {
  test("a whole copy that only the user may read, made beside the server", async () => {
    const store = await fill();
    const { code, out } = await run("backup", "copy.sqlite");
    expect({ code, out }).toEqual({ code: 0, out: `${join(folder, "copy.sqlite")}\n` });
    await store.close();
    expect(statSync(join(folder, "copy.sqlite")).mode & 0o777).toBe(0o600);
    const copy = new SqliteStore(join(folder, "copy.sqlite"));
    expect((await copy.responses.items("ann", "resp_1"))?.output).toEqual([
      item("msg_2", "Hello."),
    ]);
    expect(await copy.conversations.items("bob", "conv_1")).toHaveLength(1);
    await copy.close();
  });

  test("over another file", async () => {
    await (await fill()).close();
    writeFileSync(join(folder, "mine"), "mine");
    const { code, err } = await run("backup", "mine");
    expect(code).toBe(2);
    expect(err).toContain(`${join(folder, "mine")} exists. Name another file.`);
    expect(readFileSync(join(folder, "mine"), "utf8")).toBe("mine");
  });
});

test("export: one JSON object a line", async () => {
  await (await fill()).close();
  const { code, out } = await run("export");
  expect(code).toBe(0);
  expect(
    out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toEqual([
    {
      kind: "response",
      id: "resp_1",
      owner: "ann",
      created_at: now,
      response: { id: "resp_1", status: "completed", output: [item("msg_2", "Hello.")] },
      input: [item("msg_1", "Hi")],
    },
    {
      kind: "conversation",
      id: "conv_1",
      owner: "bob",
      created_at: now,
      metadata: { a: "b" },
      items: [item("msg_3", "x".repeat(100_000))],
    },
    {
      kind: "branched_conversation",
      id: "conv_2",
      owner: "ann",
      title: "Talk",
      created_at: now * 1000,
      updated_at: now * 1000,
      leaf_id: null,
      settings: { tools: [] },
      messages: [],
    },
  ]);
});

test.each([
  [["mend"], "There is no store mend."],
  [["backup"], "Name the file to write."],
  [["check", "x"], "store check takes no file. Write --store FILE to name the store."],
  [["export", "--store=none"], '"none" is no store.'],
  [["check"], "There is no store "],
  [["backup", "x"], "There is no store "],
])("mistakes: %j", async (args, message) => {
  const { code, out, err } = await run(...args);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain(message);
});

test("--help", async () => {
  const { code, out } = await run("--help");
  expect(code).toBe(0);
  for (const word of ["check|backup|export", "--set-aside", "--store"]) expect(out).toContain(word);
});

describe("a server whose store cannot be opened", () => {
  const lines: unknown[] = [];
  const note = (...line: unknown[]): void => void lines.push(line);
  const log = { warn: note, error: note };
  const open = (...args: string[]) =>
    openStore(serveConfig([`--store=${path}`, ...args], {}, folder), log);

  test("refuses to start, names the remedy and leaves the file as it is", async () => {
    const bytes = await breakFile();
    await expect(open()).rejects.toMatchObject({
      code: "store_invalid",
      message: expect.stringContaining(`fermata store check --set-aside --store ${path}`),
    });
    expect(readFileSync(path)).toEqual(bytes);
  });

  test("--store-optional: serves without, and says so", async () => {
    await breakFile();
    expect(await open("--store-optional")).toBeNull();
    expect(lines).toEqual([
      [
        { code: "store_invalid", reason: expect.stringContaining("is broken") },
        "serving without a store: nothing is kept",
      ],
    ]);
  });
});

describe("a Postgres address, whose password nobody reads", () => {
  const log = { warn: () => {}, error: () => {} };
  const open = (address: string, ...args: string[]) =>
    openStore(serveConfig([`--store=${address}`, ...args], {}, folder), log);
  const nobody = "postgres://ann:secret-1@127.0.0.1:1/db";

  test.each(["check", "backup", "export"])(
    "store %s names the server's programs",
    async (action) => {
      const file = action === "backup" ? ["copy"] : [];
      const { code, out, err } = await run(action, ...file, `--store=${nobody}`);
      expect({ code, out }).toEqual({ code: 2, out: "" });
      expect(err).toContain("pg_dump makes a copy");
      expect(err).not.toContain("secret-1");
      expect(readdirSync(folder)).toEqual([]);
    },
  );

  test("of a database that is not there: refused, or with --store-optional nothing is kept", async () => {
    const refused = open(nobody);
    await expect(refused).rejects.toMatchObject({ code: "store_unavailable", param: "store" });
    const text = await refused.catch(String);
    expect(text).toContain("postgres://ann@127.0.0.1:1/db cannot be reached: ");
    expect(text).not.toContain("secret-1");
    expect(await open(nobody, "--store-optional")).toBeNull();
  });

  test.each(["postgres:secret-1", "postgres://ann:secret-1@:x/db", "postgresql:/ann:secret-1@h/d"])(
    "%s is no address",
    async (address) => {
      const text = await open(address).catch(String);
      expect(text).toContain("--store is no Postgres address. Write postgres://USER:PASSWORD@");
      expect(text).not.toContain("secret-1");
      expect(readdirSync(folder)).toEqual([]);
    },
  );
});
