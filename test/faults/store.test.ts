// A process that stands still, or that another one takes the file from, keeps what it works on. Needs `npm run build`.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Database from "libsql";
import { expect, test } from "vitest";
import { serveCommand } from "../support/command-line.ts";
import { times, told } from "./support/injections.ts";

const library = fileURLToPath(new URL("../../dist/store/sqlite/sqlite-store.js", import.meta.url));

/** Opens the store and tells so; stores a response that is in progress if it has an id for it. */
const program = `
const { SqliteStore } = await import(process.argv[1]);
try {
  const store = new SqliteStore(process.argv[2]);
  const id = process.argv[3];
  if (id) await store.responses.create({ id, owner: "ann", createdAt: 2e9, previousResponseId: null,
    conversationId: null, body: { id, status: "in_progress" }, input: [] });
  console.log("open");
  process.stdin.resume();
  process.stdin.on("data", async () => {
    await store.responses.update("ann", id, { id, status: "completed" }, []);
    console.log("written");
  });
} catch (error) {
  console.log(error.message);
}`;

function start(path: string, id = ""): ChildProcess {
  const args = ["--input-type=module", "-e", program, library, path, id];
  return spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
}

async function said(child: ChildProcess): Promise<string> {
  const [text] = await once(child.stdout!, "data");
  return String(text).trim();
}

function statusOf(path: string, id: string): string {
  const database = new Database(path);
  const row = database.prepare("SELECT body FROM responses WHERE id = ?").get(id);
  database.close();
  return JSON.parse((row as { body: string }).body).status;
}

test("SIGSTOP, no sign of life for hours, a second server: refused, and nothing is taken", async () => {
  const folder = mkdtempSync(join(tmpdir(), "fermata-stopped-"));
  const path = join(folder, "store.sqlite");
  try {
    const count = times(3, 50);
    for (let round = 0; round < count; round++) {
      const id = `r${round}`;
      const first = start(path, id);
      expect(await said(first)).toBe("open");
      first.kill("SIGSTOP");
      const database = new Database(path);
      // As after hours of standing still, or a jump of the clock.
      database.exec("UPDATE runs SET seen_at = 1");
      database.close();
      const second = start(path);
      expect(await said(second)).toContain(`is in use by process ${first.pid}`);
      second.kill("SIGKILL");
      expect(statusOf(path, id)).toBe("in_progress");
      first.kill("SIGCONT");
      first.stdin!.write("go\n");
      expect(await said(first)).toBe("written");
      expect(statusOf(path, id)).toBe("completed");
      first.kill("SIGKILL");
      await once(first, "exit");
    }
    // Killed: the next one takes the file at once.
    const next = start(path);
    expect(await said(next)).toBe("open");
    next.kill("SIGKILL");
    await once(next, "exit");
    told("a server is stopped (SIGSTOP), the clock jumps", count);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("two servers with the default store: the second has one of its own, a named one is refused", async () => {
  const folder = mkdtempSync(join(tmpdir(), "fermata-default-"));
  const before = process.env["XDG_DATA_HOME"];
  process.env["XDG_DATA_HOME"] = folder;
  const stores = (): string[] =>
    readdirSync(join(folder, "fermata")).filter((name) => name.endsWith(".sqlite"));
  const first = await serveCommand();
  try {
    const second = await serveCommand();
    expect(stores()).toEqual(["store-0.sqlite", "store.sqlite"]);
    expect(await second.stop()).toBe(0);
    const named = `--store=${join(folder, "fermata", "store.sqlite")}`;
    await expect(serveCommand(named)).rejects.toThrow("is in use by process");
  } finally {
    process.env["XDG_DATA_HOME"] = before;
    if (before === undefined) delete process.env["XDG_DATA_HOME"];
    await first.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
