// Fermata beside an MCP server that breaks every rule: whatever the server does, the client's stream ends as
// it should, the generation is resumed or cancelled, the other server goes on, and the log says what
// happened. The model is a fake, the servers are real processes.
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { McpHost } from "../../src/mcp/mcp-host.ts";
import type { ToolCall } from "../../src/chat/types.ts";
import { createWorld, finish, sseEvents, usage, type World } from "./fake-services.ts";

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/mcp/${name}`, import.meta.url));
const silenceMs = 3000;
/** The machine may be busy, and some servers are waited for. */
vi.setConfig({ testTimeout: 60_000 });

const lines: { message: string; server?: string; [field: string]: unknown }[] = [];
const write = (fields: object, message: string): void => void lines.push({ ...fields, message });
const server = (id: string, file: string, ...args: string[]) => ({
  id,
  command: process.execPath,
  args: [fixture(file), ...args],
  env: {},
});

let world: World;
let host: McpHost;

beforeAll(async () => {
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
  await host.start();
  world = createWorld({ tools: host, config: { toolTimeoutMs: silenceMs } });
});
afterAll(async () => {
  await world.app.close();
  await host.close();
});

let count = 0;
function callOf(name: string, args: object): ToolCall {
  return { id: `call_${++count}`, name, arguments: JSON.stringify(args) };
}

const payload = { messages: [{ role: "user", content: "Try." }], stream: true };

/** One streamed answer whose model makes these calls and then says so. */
async function answerWith(...calls: ToolCall[]): Promise<void> {
  world.chat.script = [
    { type: "hold", calls, usage },
    { type: "content", text: "That is all." },
    finish("stop"),
  ];
  const resumes = world.chat.outputs.length;
  const url = "/v1/chat/completions";
  const reply = await world.app.inject({ method: "POST", url, payload });
  const chunks = sseEvents(reply.body) as (Chunk | "[DONE]")[];
  expect(chunks.at(-1)).toBe("[DONE]");
  const choices = chunks.flatMap((chunk) => (chunk === "[DONE]" ? [] : chunk.choices));
  expect(choices.map(({ delta }) => delta.content ?? "").join("")).toBe("That is all.");
  expect(choices.at(-1)?.finish_reason).toBe("stop");
  // Every call has its output, in the order of the calls.
  expect(
    world.chat.outputs.slice(resumes).map((outputs) => outputs.map(({ callId }) => callId)),
  ).toEqual([calls.map(({ id }) => id)]);
}

interface Chunk {
  choices: { delta: { content?: string }; finish_reason: string | null }[];
}

async function outcomes(): Promise<Record<string, number>> {
  const text = (await world.app.inject({ url: "/metrics" })).body;
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
  await answerWith(callOf(`bad_${fault}`, {}), callOf("good_echo", { message: fault }));

  const after = await outcomes();
  const key = `bad_${fault} ${outcome}`;
  expect(after[key], JSON.stringify(after)).toBe((before[key] ?? 0) + 1);
  expect(after["good_echo ok"]).toBe((before["good_echo ok"] ?? 0) + 1);

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
  await answerWith(...messages.map((message) => callOf("bad_shuffled", { message })));
  expect(world.chat.outputs.at(-1)!.map(({ content }) => content)).toEqual(messages);
  const after = await outcomes();
  expect(after["bad_shuffled ok"]).toBe((before["bad_shuffled ok"] ?? 0) + 100);
});

test("a server that dies at every call is out of order after a few, and its tools are withdrawn", async () => {
  await recovered();
  lines.length = 0;
  const withdrawn = (): boolean =>
    lines.some(({ message }) => message === "MCP server out of order");
  for (let call = 0; call < 8 && !withdrawn(); call++) {
    await answerWith(callOf("bad_exit", {}));
    await vi.waitFor(() => expect(withdrawn() || host.servers()[0]?.state === "ready").toBe(true), {
      timeout: 10_000,
      interval: 5,
    });
  }
  expect(withdrawn()).toBe(true);
  // It is tried again now and then, and what works is offered.
  await recovered();
  await answerWith(callOf("bad_echo", { message: "here" }));
  expect((await outcomes())["bad_echo ok"]).toBe(1);
});
