// Fermata beside an MCP server that breaks every rule, on the real engine: whatever the server does, the
// client's stream ends as it should, the sequence and its cells are free afterwards, the other server goes
// on, and the log says what happened. test/contract/mcp-faults.test.ts does the same in less time over a fake
// model; this one takes minutes and runs with FERMATA_MCP_FAULTS=1.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test as always } from "vitest";
import { serveCommand } from "../support/command-line.ts";
import {
  expectOneMore,
  faults,
  FaultyServers,
  silenceMs,
  toolOutcomes,
} from "../support/mcp-faults.ts";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";
import { eventually } from "../support/eventually.ts";

const isWanted = process.env["FERMATA_MCP_FAULTS"] === "1";
const test = always.runIf(isWanted);

const servers = new FaultyServers();
let running: ScriptedServer;

beforeAll(async () => {
  if (!isWanted) return;
  running = await startScriptedServer({
    host: servers.host,
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
  return toolOutcomes(await (await fetch(`${running.url}/metrics`)).text());
}

test("a server that is slow to start is not waited for, and comes later", async () => {
  await servers.expectSlowStart();
});

test.each(faults)("%s", async (fault, outcome, said) => {
  await servers.recovered();
  servers.forgetLog();
  const before = await outcomes();
  // The good server is called in the same round.
  const calls = callText(`bad_${fault}`, {}) + callText("good_echo", { message: fault });
  await answerWith(`Try ${fault}.`, calls);

  const after = await outcomes();
  expectOneMore(`bad_${fault} ${outcome}`, before, after);
  expectOneMore("good_echo ok", before, after);
  expect(await running.settledStats()).toMatchObject({
    running: 0,
    waiting: 0,
    held: 0,
    cellsUsed: 0,
  });
  expect(await running.engine.checkIntegrity()).toBe("");
  await servers.expectLog(said);
});

test("a hundred calls at once are answered each with its own", async () => {
  await servers.recovered();
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
  await servers.recovered();
  await running.script("Leave me.", [callText("bad_hang", {}), "Never."]);
  const controller = new AbortController();
  const stream = await running.client.chat.completions.create(
    { model: "default", stream: true, messages: [{ role: "user", content: "Leave me." }] },
    { signal: controller.signal },
  );
  await eventually(() => expect(running.engine.stats().held).toBe(1));
  controller.abort();
  await (async () => {
    for await (const _chunk of stream);
  })().catch(() => {});
  expect(await running.settledStats()).toMatchObject({ held: 0, cellsUsed: 0 });
});

test("a server that dies at every call is out of order after a few, and its tools are withdrawn", async () => {
  await servers.expectOutOfOrder((attempt) =>
    answerWith(`Die ${attempt}.`, callText("bad_exit", {})),
  );
  // It is tried again now and then, and what works is offered.
  await servers.recovered();
  await answerWith("Echo.", callText("bad_echo", { message: "here" }));
  expect((await outcomes())["bad_echo ok"]).toBe(1);
});

always("the tokens of tools that come after the start are logged when they are there", async () => {
  const folder = await mkdtemp(join(tmpdir(), "fermata-late-"));
  const [servers, settings, go] = ["mcp.json", "fermata.json", "go"].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  const program = "node_modules/.bin/mcp-server-filesystem";
  const script = `until [ -e ${go} ]; do sleep 0.1; done; exec ${program} ${folder}`;
  const late = { command: "sh", args: ["-c", script] };
  await writeFile(servers, JSON.stringify({ mcpServers: { late } }));
  await writeFile(settings, JSON.stringify({ mcpConfig: servers, store: "none" }));
  const server = await serveCommand(`--config=${settings}`);
  try {
    expect(server.log()).toContain("MCP server takes its time");
    expect(server.log()).not.toContain("tokens of the tools");
    await writeFile(go, "");
    await eventually(() =>
      expect(server.log()).toMatch(/"servers":\{"late":\d{3,}\}.*tokens of the tools/),
    );
  } finally {
    await server.stop();
    await rm(folder, { recursive: true });
  }
});
