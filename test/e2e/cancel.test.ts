// The client leaves, wherever the run is: everything below it stops, and nothing stays held.
import { afterEach, describe, expect, test } from "vitest";
import { defineTool } from "../../src/tools/tool-builder.ts";
import type { Tool } from "../../src/tools/types.ts";
import type { AgentsJson } from "../support/agents.ts";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

const team: AgentsJson = {
  supervisor: "boss",
  agents: {
    boss: { description: "Asks", agents: ["middle"], tools: { slow: "*" } },
    middle: { description: "Asks on", agents: ["reader"], tools: { slow: "*" } },
    reader: { description: "Reads", tools: { slow: "*" } },
  },
};

const long = "word ".repeat(1500);
const delegate = (agent: string, task: string): string => callText("delegate", { agent, task });

let server: ScriptedServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

/** One that only its signal ends, and one that a person must allow. */
function slowTools() {
  const state = { started: 0, aborted: 0 };
  const tool = defineTool("wait", "Waits").run(async (_args, { signal }) => {
    state.started += 1;
    await new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    state.aborted += 1;
    return "stopped";
  }, "slow");
  const guarded: Tool = {
    ...defineTool("guarded", "Needs consent").run(() => "done", "slow"),
    approval: "always",
  };
  return { tools: [tool, guarded], state };
}

interface Point {
  name: string;
  /** What each says: the boss first. */
  scripts: Record<string, string[]>;
  question?: string;
  /** The run is there. */
  isReached(server: ScriptedServer, tool: ReturnType<typeof slowTools>["state"]): boolean;
}

let rows = { prefill: 0, decode: 0 };
const held = ({ engine }: ScriptedServer): number => engine.stats().held;
const question = "Begin.";

const points: Point[] = [
  {
    name: "prefill",
    question: long,
    scripts: { [long]: [long] },
    isReached: () => rows.prefill > 0,
  },
  {
    name: "decode",
    scripts: { [question]: [long] },
    isReached: () => rows.decode > 10,
  },
  {
    name: "tool",
    scripts: { [question]: [callText("wait", {}), "Done."] },
    isReached: (_server, tool) => tool.started === 1,
  },
  {
    name: "two tools",
    scripts: { [question]: [`${callText("wait", {})}\n${callText("wait", {})}`, "Done."] },
    isReached: (_server, tool) => tool.started === 2,
  },
  {
    name: "sub-agent's prefill",
    scripts: { [question]: [delegate("middle", long), "Done."], [long]: [long] },
    isReached: (running) => held(running) === 1 && running.engine.stats().running === 1,
  },
  {
    name: "sub-agent's decode",
    scripts: { [question]: [delegate("middle", "Go."), "Done."], "Go.": [long] },
    isReached: (running) => held(running) === 1 && rows.decode > 100,
  },
  {
    name: "sub-agent's tool",
    scripts: {
      [question]: [delegate("middle", "Go."), "Done."],
      "Go.": [callText("wait", {}), "Done."],
    },
    isReached: (_server, tool) => tool.started === 1,
  },
  {
    name: "two sub-agents, one in a tool, one decoding",
    scripts: {
      [question]: [`${delegate("middle", "Go.")}\n${delegate("middle", "Talk.")}`, "Done."],
      "Go.": [callText("wait", {}), "Done."],
      "Talk.": [long],
    },
    isReached: (running, tool) => tool.started === 1 && held(running) === 2 && rows.decode > 150,
  },
  {
    name: "approval",
    scripts: { [question]: [callText("guarded", {}), "Done."] },
    isReached: ({ approvals }) => approvals.pending().length === 1,
  },
  {
    name: "a sub-agent's approval",
    scripts: {
      [question]: [delegate("middle", "Go."), "Done."],
      "Go.": [callText("guarded", {}), "Done."],
    },
    isReached: ({ approvals }) => approvals.pending().length === 1,
  },
  {
    name: "the tool of a sub-agent's sub-agent",
    scripts: {
      [question]: [delegate("middle", "Go."), "Done."],
      "Go.": [delegate("reader", "Read."), "Done."],
      "Read.": [callText("wait", {}), "Done."],
    },
    isReached: (_server, tool) => tool.started === 1,
  },
];

describe("cancel", () => {
  test.each(points)("in $name", async (point) => {
    const { tools, state } = slowTools();
    server = await startScriptedServer({ agents: team, tools, engine: { threads: 1 } });
    const running = server;
    for (const [message, turns] of Object.entries(point.scripts))
      await running.script(message, turns);
    rows = { prefill: 0, decode: 0 };
    running.engine.onStep(({ prefillRows, decodeRows }) => {
      rows.prefill += prefillRows;
      rows.decode += decodeRows;
    });

    const abort = new AbortController();
    const asked = fetch(`${running.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: "boss",
        messages: [{ role: "user", content: point.question ?? question }],
        stream: true,
      }),
      signal: abort.signal,
    })
      .then((response) => response.text())
      .catch(() => null);
    await until(() => point.isReached(running, state));
    abort.abort();
    const cancelledAt = performance.now();
    expect(await asked).toBeNull();
    const stats = await running.settledStats();
    if (process.env["FERMATA_REPORT"] !== undefined)
      console.log(`${point.name}: ${Math.round(performance.now() - cancelledAt)} ms`);

    expect([stats.running, stats.waiting, stats.held]).toEqual([0, 0, 0]);
    // What is left is retained for whoever asks the same again, and pinned by nobody.
    expect(stats.cellsUsed).toBe(0);
    await until(() => state.aborted === state.started);
    expect(running.approvals.pending()).toEqual([]);
    expect(await running.engine.checkIntegrity()).toBe("");
    // The server goes on as if nothing had been.
    await running.script("Hello.", ["Hello to you."]);
    const completion = await running.client.chat.completions.create({
      model: "boss",
      messages: [{ role: "user", content: "Hello." }],
    });
    expect(completion.choices[0]?.message.content).toBe("Hello to you.");
  });
});

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 2));
}
