// Fermata beside an MCP server that breaks every rule: whatever the server does, the client's stream ends as
// it should, the generation is resumed or cancelled, the other server goes on, and the log says what
// happened. The model is a fake, the servers are real processes.
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { ToolCall } from "../../src/chat/types.ts";
import {
  expectOneMore,
  faults,
  FaultyServers,
  patientMs,
  silenceMs,
  toolOutcomes,
} from "../support/mcp-faults.ts";
import { createWorld, finish, sseEvents, type World } from "./fake-services.ts";
import { usage } from "./fake-figures.ts";

/** The machine may be busy, and some servers are waited for. */
vi.setConfig({ testTimeout: 120_000 });

const servers = new FaultyServers();
/** Of one the tools have little time, of the other as much as they take. */
let hasty: World;
let patient: World;
let world: World;

beforeAll(async () => {
  await servers.host.start();
  hasty = createWorld({ tools: servers.host, config: { toolTimeoutMs: silenceMs } });
  patient = createWorld({ tools: servers.host, config: { toolTimeoutMs: patientMs } });
  world = patient;
});
afterAll(async () => {
  await hasty.app.close();
  await patient.app.close();
  await servers.host.close();
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
  return toolOutcomes((await world.app.inject({ url: "/metrics" })).body);
}

test("a server that is slow to start is not waited for, and comes later", async () => {
  await servers.expectSlowStart();
});

test.each(faults)("%s", async (fault, outcome, said) => {
  world = outcome === "timeout" ? hasty : patient;
  await servers.recovered();
  servers.forgetLog();
  const before = await outcomes();
  // The good server is called in the same round.
  await answerWith(callOf(`bad_${fault}`, {}), callOf("good_echo", { message: fault }));

  const after = await outcomes();
  expectOneMore(`bad_${fault} ${outcome}`, before, after);
  expectOneMore("good_echo ok", before, after);
  await servers.expectLog(said);
});

test("a hundred calls at once are answered each with its own", async () => {
  world = patient;
  await servers.recovered();
  const before = await outcomes();
  const messages = Array.from({ length: 100 }, (_, index) => `m${index}`);
  await answerWith(...messages.map((message) => callOf("bad_shuffled", { message })));
  expect(world.chat.outputs.at(-1)!.map(({ content }) => content)).toEqual(messages);
  const after = await outcomes();
  expect(after["bad_shuffled ok"]).toBe((before["bad_shuffled ok"] ?? 0) + 100);
});

test("a server that dies at every call is out of order after a few, and its tools are withdrawn", async () => {
  await servers.expectOutOfOrder(() => answerWith(callOf("bad_exit", {})));
  // It is tried again now and then, and what works is offered.
  await servers.recovered();
  await answerWith(callOf("bad_echo", { message: "here" }));
  expect((await outcomes())["bad_echo ok"]).toBe(1);
});
