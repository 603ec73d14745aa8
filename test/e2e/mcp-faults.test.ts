// Fermata beside an MCP server that breaks every rule, on the real engine: whatever the server does, the
// client's stream ends as it should, the sequence and its cells are free afterwards, the other server goes
// on, and the log says what happened. test/contract/mcp-faults.test.ts does the same in less time over a fake
// model; this one takes minutes and runs with FERMATA_MCP_FAULTS=1.
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test as always, vi } from "vitest";
import { McpHost } from "../../src/mcp/mcp-host.ts";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/mcp/${name}`, import.meta.url));
const silenceMs = 3000;

const lines: { message: string; server?: string; [field: string]: unknown }[] = [];
const write = (fields: object, message: string): void => void lines.push({ ...fields, message });
const server = (id: string, file: string, ...args: string[]) => ({
  id,
  command: process.execPath,
  args: [fixture(file), ...args],
  env: {},
});

const isWanted = process.env["FERMATA_MCP_FAULTS"] === "1";
const test = always.runIf(isWanted);

let running: ScriptedServer;
let host: McpHost;

beforeAll(async () => {
  if (!isWanted) return;
  host = new McpHost(
    [
      server("bad", "misbehaving.mjs"),
      server("good", "server.mjs", "echo"),
      server("slow", "misbehaving.mjs", "2500"),
    ],
    {
      log: { debug: () => {}, info: write, warn: write },
      version: "0.0.0-test",
      toolTimeoutMs: silenceMs + 1000,
      reconnectDelayMs: 50,
      brokenDelayMs: 300,
      pingTimeoutMs: 300,
      startPatienceMs: 1500,
    },
  );
  running = await startScriptedServer({
    host,
    engine: { contextSize: 12_288, parallel: 4 },
    config: { toolTimeoutMs: silenceMs },
  });
});
afterAll(async () => {
  if (isWanted) await running.close();
});

/** One streamed answer whose model makes these calls and then says so. */
async function answerWith(question: string, calls: string): Promise<void> {
  await running.script(question, [calls, "That is all."]);
  const stream = await running.client.chat.completions.create({
    model: "default",
    stream: true,
    messages: [{ role: "user", content: question }],
  });
  let content = "";
  let finish: string | null = null;
  for await (const { choices } of stream) {
    content += choices[0]?.delta.content ?? "";
    finish = choices[0]?.finish_reason ?? finish;
  }
  expect({ content, finish }, question).toEqual({ content: "That is all.", finish: "stop" });
}

async function outcomes(): Promise<Record<string, number>> {
  const text = await (await fetch(`${running.url}/metrics`)).text();
  const found = text.matchAll(
    /^fermata_tool_calls_total\{server="(\w+)",tool="(\w+)",outcome="(\w+)"\} (\d+)/gm,
  );
  return Object.fromEntries(
    [...found].map(([, , tool, outcome, count]) => [`${tool} ${outcome}`, Number(count)]),
  );
}

/** Ready again, whatever came before. */
async function recovered(): Promise<void> {
  await vi.waitFor(
    () => {
      const [bad] = host.servers();
      expect(bad?.state).toBe("ready");
      expect(bad?.tools.length).toBeGreaterThan(10);
    },
    { timeout: 15_000, interval: 20 },
  );
}

/** [fault, outcome, what the log says of it] */
const faults: [string, "ok" | "error" | "timeout", RegExp?][] = [
  ["hang", "timeout"],
  ["late", "timeout"],
  ["exit", "error", /it exited with code 3/],
  ["killed", "error", /it was ended by SIGKILL/],
  ["orphan", "error", /it exited with code 0/],
  ["last_words", "error", /its last words: out of ␛\[31mpaper/],
  ["flood", "error", /lines \(\d+ MiB\) that answer nothing/],
  ["flood_messages", "error", /lines \(\d+ MiB\) that answer nothing/],
  ["huge", "error", /a line of 50 MiB was not read/],
  ["huge_id_last", "error", /a line of 50 MiB was not read/],
  ["large", "ok"],
  ["invalid_json", "timeout", /a line is no message: \{"jsonrpc":"2.0","id":/],
  ["wrong_id", "timeout", /unknown message ID/],
  ["no_object", "error"],
  ["odd_content", "ok"],
  ["twice", "ok", /unknown message ID/],
  ["bytewise", "ok"],
  ["failure", "error"],
  ["progress", "ok"],
  ["changing", "ok"],
  ["deaf", "timeout", /it answers nothing any more/],
];

test("a server that is slow to start is not waited for, and comes later", async () => {
  expect(lines).toContainEqual({ server: "slow", message: "MCP server takes its time" });
  await vi.waitFor(() => expect(host.servers()[2]?.state).toBe("ready"), 5000);
});

test.each(faults)("%s", async (fault, outcome, said) => {
  await recovered();
  lines.length = 0;
  const before = await outcomes();
  // The good server is called in the same round.
  const calls = callText(`bad_${fault}`, {}) + callText("good_echo", { message: fault });
  await answerWith(`Try ${fault}.`, calls);

  const after = await outcomes();
  const key = `bad_${fault} ${outcome}`;
  expect(after[key], JSON.stringify(after)).toBe((before[key] ?? 0) + 1);
  expect(after["good_echo ok"]).toBe((before["good_echo ok"] ?? 0) + 1);

  const stats = await running.settledStats();
  expect(stats).toMatchObject({ running: 0, waiting: 0, held: 0, cellsUsed: 0 });
  expect(await running.engine.checkIntegrity()).toBe("");
  if (said !== undefined) {
    await vi.waitFor(() => {
      const told = lines
        .filter((line) => line.server === "bad")
        .map((line) => JSON.stringify(line));
      expect(told.join("\n").replaceAll('\\"', '"')).toMatch(said);
    }, 20_000);
  }
  expect(lines.filter((line) => line.server === "good")).toEqual([]);
  // No flood of lines, whatever the server wrote.
  expect(lines.length).toBeLessThan(40);
});

test("a hundred calls at once are answered each with its own", async () => {
  await recovered();
  const before = await outcomes();
  const messages = Array.from({ length: 100 }, (_, index) => `m${index}`);
  await answerWith(
    "Call a hundred times.",
    messages.map((message) => callText("bad_shuffled", { message })).join("\n"),
  );
  const after = await outcomes();
  expect(after["bad_shuffled ok"]).toBe((before["bad_shuffled ok"] ?? 0) + 100);
  expect(await running.settledStats()).toMatchObject({ held: 0, cellsUsed: 0 });
});

test("a client that leaves while a tool hangs frees the sequence at once", async () => {
  await recovered();
  await running.script("Leave me.", [callText("bad_hang", {}), "Never."]);
  const controller = new AbortController();
  const stream = await running.client.chat.completions.create(
    { model: "default", stream: true, messages: [{ role: "user", content: "Leave me." }] },
    { signal: controller.signal },
  );
  await vi.waitFor(() => expect(running.engine.stats().held).toBe(1), 5000);
  controller.abort();
  await (async () => {
    for await (const _chunk of stream);
  })().catch(() => {});
  expect(await running.settledStats()).toMatchObject({ held: 0, cellsUsed: 0 });
});

test("a server that dies at every call is out of order after a few, and its tools are withdrawn", async () => {
  await recovered();
  lines.length = 0;
  const withdrawn = (): boolean =>
    lines.some(({ message }) => message === "MCP server out of order");
  for (let call = 0; call < 8 && !withdrawn(); call++) {
    await answerWith(`Die ${call}.`, callText("bad_exit", {}));
    await vi.waitFor(() => expect(withdrawn() || host.servers()[0]?.state === "ready").toBe(true), {
      timeout: 10_000,
      interval: 5,
    });
  }
  expect(withdrawn()).toBe(true);
  // It is tried again now and then, and what works is offered.
  await recovered();
  await answerWith("Echo.", callText("bad_echo", { message: "here" }));
  expect((await outcomes())["bad_echo ok"]).toBe(1);
});
