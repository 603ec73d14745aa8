// Writes and syncs that fail or are slow, in the store, the audit log and the cache's files. Needs `npm run build`.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import Database from "libsql";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { canFail, failing, type Faults, injectedBy } from "./support/failing-io.ts";
import { told, times } from "./support/injections.ts";
import { post } from "./support/served.ts";
import { metric } from "../support/metric.ts";

let folder: string;
let server: ServedCommand | undefined;
const at = (name: string): string => join(folder, name);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fermata-disk-"));
});
afterEach(async () => {
  await server?.stop("SIGKILL");
  server = undefined;
  rmSync(folder, { recursive: true });
});

const library = (path: string): string =>
  pathToFileURL(join(import.meta.dirname, "../../dist", path)).href;

/** What a program prints, a line each, while its calls fail. */
function run(program: string, args: readonly string[], faults: Faults): string[] {
  const given = ["--input-type=module", "-e", program, ...args];
  const env = { ...process.env, ...failing(faults) };
  const output = execFileSync(process.execPath, given, { env, encoding: "utf8", maxBuffer: 1e9 });
  return output.split("\n").filter((line) => line !== "");
}

/** Stores responses, changes them, and tells which state of each was acknowledged. */
const storing = `
import { writeFileSync } from "node:fs";
const { SqliteStore } = await import(process.argv[1]);
const [, , path, from, count] = process.argv;
const store = new SqliteStore(path);
writeFileSync(from, "");
for (let number = 0; number < Number(count); number++) {
  const id = "r" + number;
  const words = "word ".repeat(200);
  const put = { id, owner: "ann", createdAt: 2e9, previousResponseId: null, conversationId: null, input: [] };
  try {
    await store.responses.create({ ...put, body: { id, status: "in_progress", words } });
    console.log(id + " in_progress");
    await store.responses.update("ann", id, { id, status: "completed", words }, []);
    console.log(id + " completed");
  } catch {}
}
process.kill(process.pid, "SIGKILL");
`;

const errors: [string, Faults][] = [
  ["on a full disk", { errno: 28 }],
  ["on a disk that fails", { errno: 5 }],
];

test.runIf(canFail).each(errors)(
  "store %s: what was acknowledged is there, whole",
  async (name, fault) => {
    let injected = 0;
    for (const every of [13, 29, 17, 47, 61].slice(0, times(2, 5))) {
      const [path, count] = [at(`store-${every}.sqlite`), at(`count-${every}`)];
      const from = at(`from-${every}`);
      const faults = { ...fault, path, every, from, count };
      const acknowledged = new Map<string, string>();
      const args = [library("store/sqlite/sqlite-store.js"), path, from, String(times(60, 600))];
      for (const line of runKilled(storing, args, faults)) {
        const [id, status] = line.split(" ");
        acknowledged.set(id!, status!);
      }
      injected += injectedBy(count);
      const database = new Database(path);
      expect(database.pragma("integrity_check")).toEqual([{ integrity_check: "ok" }]);
      const find = database.prepare("SELECT body FROM responses WHERE id = ?");
      for (const [id, status] of acknowledged) {
        const { body } = find.get(id) as { body: string };
        const stored = JSON.parse(body) as { status: string };
        // A change that failed to be told of may be there all the same.
        if (status === "completed") expect(stored.status).toBe("completed");
      }
      database.close();
      expect(acknowledged.size).toBeGreaterThan(0);
    }
    expect(injected).toBeGreaterThan(times(20, 300));
    told(`store ${name}`, injected);
  },
);

/** It ends itself by SIGKILL, as in a crash. */
function runKilled(program: string, args: readonly string[], faults: Faults): string[] {
  try {
    run(program, args, faults);
  } catch (error) {
    const { stdout, signal, stderr } = error as { stdout: string; stderr: string; signal: string };
    if (signal !== "SIGKILL") throw new Error(stderr, { cause: error });
    return stdout.split("\n").filter((line) => line !== "");
  }
  throw new Error("It was not killed.");
}

/** Runs of conversations, and which step of each was acknowledged. What fails is tried again. */
const conversing = `
import { writeFileSync } from "node:fs";
const { SqliteStore } = await import(process.argv[1]);
const [, , path, from, count] = process.argv;
const { branches } = new SqliteStore(path);
writeFileSync(from, "");
const [createdAt, updatedAt] = [2e12, 2e12];
const words = "word ".repeat(200);
const message = { createdAt, body: { words } };
for (let number = 0; number < Number(count); number++) {
  const run = { id: "run" + number, conversationId: "c" + number, messageId: "a" + number };
  const question = { ...message, id: "q" + number, parentId: null, runId: null };
  const answer = { ...message, id: run.messageId, parentId: question.id, runId: run.id };
  const conversation = { id: run.conversationId, title: "", createdAt, updatedAt, leafId: null };
  const leaf = { title: words, leafId: answer.id };
  const end = { id: answer.id, body: { words: "end" } };
  const steps = {
    created: () => branches.createConversation("ann", { ...conversation, settings: { model: null } }),
    begun: () => branches.beginRun("ann", { ...run, request: words }, [question, answer], leaf),
    told: () => branches.appendEvents(run.id, [{ number: 1, body: words }]),
    ended: () => branches.endRun(run.id, end, [{ number: 2, body: words }]),
  };
  let failed = 0;
  for (const [name, step] of Object.entries(steps)) {
    while (failed < 2) {
      try {
        await step();
        console.log(conversation.id + " " + name);
        break;
      } catch {
        failed += 1;
      }
    }
  }
}
process.kill(process.pid, "SIGKILL");
`;

const progress = ["created", "begun", "told", "ended"];

test.runIf(canFail).each(errors)(
  "conversations in a store %s: what was acknowledged is there, and each step is there as a whole or not at all",
  async (name, fault) => {
    let injected = 0;
    const seen = new Set<string>();
    for (const every of [43, 61, 17, 97, 151].slice(0, times(2, 5))) {
      const [path, from, count] = [
        at(`store-${every}.sqlite`),
        at(`from-${every}`),
        at(`count-${every}`),
      ];
      const args = [library("store/sqlite/sqlite-store.js"), path, from, String(times(60, 600))];
      const lines = runKilled(conversing, args, { ...fault, path, every, from, count });
      injected += injectedBy(count);
      const acknowledged = new Map(lines.map((line) => line.split(" ") as [string, string]));
      for (const state of await expectConversations(path, acknowledged)) seen.add(state);
    }
    expect([...seen].sort()).toEqual(["ended", "interrupted"]);
    told(`conversations in a store ${name}`, injected);
  },
);

/** @returns the states that were there */
async function expectConversations(
  path: string,
  acknowledged: ReadonlyMap<string, string>,
): Promise<Set<string>> {
  const store = new SqliteStore(path);
  const { branches } = store;
  const runs = await branches.takeInterrupted();
  const interrupted = new Map(runs.map((run) => [run.conversationId, run]));
  const states = new Set<string>();
  for (const [id, state] of acknowledged) {
    const run = id.replace("c", "run");
    const { leafId } = (await branches.conversation("ann", id))!;
    const messages = await branches.messages("ann", id);
    const isBegun = (await branches.run("ann", id, run)) !== null;
    expect([messages.length, leafId]).toEqual(isBegun ? [2, messages[1]!.id] : [0, null]);
    const reached = progress.indexOf(state);
    if (reached >= 1) expect(isBegun).toBe(true);
    if (!isBegun) continue;
    const events = (await branches.runEvents(run, 0)).length;
    if (reached >= 2) expect(events).toBeGreaterThanOrEqual(1);
    // An end that the disk did not take waits for room. The process died first: somebody goes on with the run.
    const left = interrupted.get(id);
    if (left === undefined) expect([messages[1]!.body, events]).toEqual([{ words: "end" }, 2]);
    else expect(left.hold?.request).toEqual(expect.any(String));
    states.add(left === undefined ? "ended" : "interrupted");
  }
  await store.close();
  return states;
}

const auditing = `
const { CallAudit } = await import(process.argv[1]);
const [, , path, count] = process.argv;
const audit = new CallAudit(path, () => {});
const call = { id: "call_1", name: "t", arguments: "{}" };
const entry = { call, server: "s", owner: "o", approvedBy: null };
for (let number = 0; number < Number(count); number++) {
  await audit.started(entry);
  await audit.ended(entry, { outcome: "ok", content: "x", milliseconds: 1 });
}
await audit.close();
console.log(audit.lostLines);
`;

test.runIf(canFail).each(errors)("audit log %s: each line is there or counted", (name, fault) => {
  const calls = times(60, 1000);
  const faults = { ...fault, path: at("audit.jsonl"), every: 3, count: at("count") };
  const args = [library("tools/call-audit.js"), at("audit.jsonl"), String(calls)];
  const lost = Number(run(auditing, args, faults)[0]);
  const lines = readFileSync(at("audit.jsonl"), "utf8").split("\n").filter(Boolean);
  for (const line of lines) expect(JSON.parse(line)).toHaveProperty("event");
  const injected = injectedBy(at("count"));
  expect(injected).toBeGreaterThan(calls / 3);
  expect(lost).toBeGreaterThan(0);
  // A line whose sync failed is counted, and may be there.
  expect(lines.length + lost).toBeGreaterThanOrEqual(2 * calls);
  told(`audit log ${name}`, injected);
});

test.runIf(canFail)("audit log on a slow disk: no line is lost, and each waits for its own", () => {
  const calls = times(20, 200);
  const path = at("audit.jsonl");
  const faults = { path, every: 1, delayMs: 20, count: at("count") };
  const args = [library("tools/call-audit.js"), path, String(calls)];
  expect(run(auditing, args, faults)).toEqual(["0"]);
  const lines = readFileSync(path, "utf8").trim().split("\n");
  const events = lines.map((line) => (JSON.parse(line) as { event: string }).event);
  expect(events).toEqual(Array.from({ length: calls }, () => ["start", "end"]).flat());
  // Each line was written and synced before the next one came.
  expect(injectedBy(at("count"))).toBe(4 * calls);
  told("audit log on a disk that takes", 4 * calls);
});

async function answered(prompt: string): Promise<string> {
  const body = { prompt, max_tokens: 4, temperature: 0 };
  const reply = await post(server!, "/v1/completions", body);
  expect(reply.status).toBe(200);
  return ((await reply.json()) as { choices: { text: string }[] }).choices[0]!.text;
}

const readOnly: Faults = { errno: 30, opens: true };

async function serveWithFaults(faults: Faults): Promise<ServedCommand> {
  Object.assign(process.env, failing(faults));
  try {
    return await serveCommand(
      "--store=none",
      "--cache-ram=0",
      "--cache-disk=64",
      `--cache-dir=${at("contexts")}`,
      "--parallel=1",
      "--retained-slots=1",
      "--deterministic",
    );
  } finally {
    for (const name of Object.keys(failing(faults))) delete process.env[name];
  }
}

const prompts = Array.from({ length: 8 }, (_, index) => `${index} ships came. `.repeat(20));

/** Asks for each prompt again and again: every answer is the first one. */
async function expectSameAnswers(first: readonly string[], rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++)
    for (const [index, prompt] of prompts.entries())
      expect(await answered(prompt)).toBe(first[index]);
}

test.runIf(canFail).each([...errors, ["on a disk that is mounted read-only", readOnly] as const])(
  "files of the cache %s: counted, logged once, and every answer is the same",
  async (name, fault) => {
    const count = at("count");
    server = await serveWithFaults({ ...fault, path: at("contexts"), every: 2, count });
    const first = [];
    for (const prompt of prompts) first.push(await answered(prompt));
    await expectSameAnswers(first, times(2, 20));
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    const injected = injectedBy(count);
    expect(injected).toBeGreaterThan(times(5, 60));
    expect(await metric(server!, 'fermata_disk_drops_total{reason="failed"}')).toBeGreaterThan(0);
    expect(server.log().match(/does not reach its files/g)).toHaveLength(1);
    told(`files of the cache ${name}`, injected);
  },
);

test.runIf(canFail)("files of the cache on a slow disk: nobody waits for it", async () => {
  const path = at("contexts");
  // Longer than the test may take.
  const delayMs = 600_000;
  server = await serveWithFaults({ path, every: 1, delayMs, count: at("count"), from: at("from") });
  writeFileSync(at("from"), "");
  const first = [];
  for (const prompt of prompts) first.push(await answered(prompt));
  await expectSameAnswers(first, 1);
  expect(injectedBy(at("count"))).toBe(1);
  expect(await metric(server!, "fermata_disk_saves_total")).toBe(0);
  expect(server.log()).not.toContain("does not reach its files");
  told("files of the cache on a disk that answers after", 1);
});
