// Delegation over the fake engine: rounds are said in the order in which generations begin.
import { describe, expect, test } from "vitest";
import { AgentRun } from "../../../src/agents/agent-run.ts";
import { delegationOf } from "../../../src/agents/delegation.ts";
import type { ChatEvent } from "../../../src/chat/types.ts";
import { defineTool } from "../../../src/tools/tool-builder.ts";
import type { Tool, ToolEvent, ToolReport } from "../../../src/tools/types.ts";
import { type AgentsJson, agentDirectory } from "../../support/agents.ts";
import { request, resultText, setUp } from "../chat/chat-fixtures.ts";
import type { FakeEngineOptions } from "../chat/fake-engine.ts";

type Event = ChatEvent | ToolEvent;

const team: AgentsJson = {
  supervisor: "boss",
  agents: {
    boss: { description: "Plans", instructions: "You plan." },
    reader: { description: "Reads", instructions: "You read.", tools: { files: "*" } },
  },
};

const readFile = defineTool("read_file", "Read a file")
  .param("path", "string", "Path", true)
  .run(
    ({ path }) => ({ content: `text of ${String(path)}`, isError: false, citations: [path] }),
    "files",
  );

function delegate(agent: string, task: string, name = "delegate"): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: { agent, task } })}\n</tool_call>`;
}

function call(name: string, args: object): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`;
}

async function run(
  json: AgentsJson,
  rounds: FakeEngineOptions["rounds"],
  { tools = [readFile], signal }: { tools?: Tool[]; signal?: AbortSignal } = {},
) {
  const world = setUp(rounds);
  const parts = { tools: () => tools, contextSize: 100_000 };
  const directory = agentDirectory(json, world.chat, parts);
  const agent = directory.find(json.supervisor)!;
  const agentRun = new AgentRun(agent, (name) => directory.find(name));
  const events: Event[] = [];
  await agentRun.answer(
    request({ signal }),
    agentRun.tools,
    { logger: world.logger },
    async (event) => void events.push(event),
  );
  const reports = events.flatMap((event) => (event.type === "tool-report" ? event.report : []));
  const output = reports.map((report) => (report.type === "output" ? report.text : "")).join("");
  const end = events.find((event) => event.type === "tool-end");
  const content = events.map((event) => (event.type === "content" ? event.text : "")).join("");
  return { ...world, agentRun, events, reports, output, end, content, finish: events.at(-1) };
}

const nested = (reports: readonly ToolReport[]): Event[] =>
  reports.flatMap((report) => (report.type === "agent" ? [report.event] : []));

test("a sub-agent's text and calls stream upward; its result is what it said", async () => {
  const { reports, output, end, content, engine } = await run(team, [
    delegate("reader", "Read a.txt"),
    `Let me look.${call("read_file", { path: "a.txt" })}`,
    "It says hello.",
    "The reader says hello.",
  ]);
  expect(content).toBe("The reader says hello.");
  expect(output).toBe("Let me look.\n\nIt says hello.");
  expect(end).toMatchObject({
    server: "agent",
    outcome: "ok",
    content: output,
    citations: ["a.txt"],
  });
  const types = nested(reports).map(({ type }) => type);
  expect(types).toContain("call-end");
  expect(types.filter((type) => type.startsWith("tool-") || type === "hold")).toEqual([
    "hold",
    "tool-start",
    "tool-end",
  ]);
  expect(types).not.toContain("content");
  expect(types.at(-1)).toBe("finish");
  const [boss, reader] = engine.generations;
  expect(engine.spell(reader!.request.prompt)).toContain("You read.");
  expect(engine.spell(reader!.request.prompt)).toContain("Read a.txt");
  expect(boss!.resumes.map(({ tokens }) => engine.spell(tokens))).toEqual([resultText(output)]);
});

test("the tool that delegates is as the shipped model knows it", async () => {
  const { agentRun } = await run(team, ["Hello."]);
  expect(agentRun.tools.map(({ definition }) => definition)).toEqual([
    {
      name: "delegate",
      description: "Run a task with one of the agents: reader.\n- reader: Reads",
      parameters: {
        type: "object",
        properties: {
          agent: { type: "string", enum: ["reader"], description: "Name of the agent" },
          task: { type: "string", description: "What the agent has to do" },
        },
        required: ["agent", "task"],
      },
    },
  ]);
});

test("a tool of an MCP server may be called delegate too", async () => {
  const json = structuredClone(team);
  Object.assign(json.agents["boss"]!, { tools: { files: "*" } });
  const taken = defineTool("delegate", "Somebody else's").run(() => "", "files");
  const { content, end } = await run(
    json,
    [delegate("reader", "Read", "delegate_task"), "Hi.", "Done."],
    { tools: [taken] },
  );
  expect([end?.type === "tool-end" && end.content, content]).toEqual(["Hi.", "Done."]);
});

test("an agent has the tools that it may call, by the names of their servers", async () => {
  const json = structuredClone(team);
  Object.assign(json.agents["reader"]!, { tools: { files: ["read_file"] } });
  const renamed = {
    ...readFile,
    originalName: "read_file",
    definition: { ...readFile.definition, name: "files_read_file" },
  };
  const others = ["list", "read_file"].map((name) =>
    defineTool(name, "").run(() => "", name === "list" ? "files" : "web"),
  );
  const { engine } = await run(json, [delegate("reader", "Read"), "Hi.", "Done."], {
    tools: [renamed, ...others],
  });
  const prompt = engine.spell(engine.generations[1]!.request.prompt);
  expect(prompt).toContain("files_read_file");
  expect(prompt).not.toContain('"list"');
  expect(prompt).not.toContain('"read_file"');
});

describe("limits, each with what the model is told of it", () => {
  const deep: AgentsJson = {
    supervisor: "a",
    agents: {
      a: { description: "A", limits: { depth: 1 } },
      b: { description: "B", agents: ["a"] },
    },
  };

  test("depth: the lowest agent is told to do its task itself", async () => {
    const { content, engine } = await run(deep, [
      delegate("b", "one"),
      delegate("a", "two"),
      "Then I did it.",
      "Good.",
    ]);
    expect(content).toBe("Good.");
    const told = engine.generations[1]!.resumes.map(({ tokens }) => engine.spell(tokens));
    expect(told).toEqual([
      resultText("Error: not run: agents may not be nested any deeper. Do the task yourself."),
    ]);
    expect(engine.generations).toHaveLength(2);
  });

  test("tokens: what an agent spends is its caller's, and a cut answer says so", async () => {
    const json = structuredClone(team);
    Object.assign(json.agents["boss"]!, { limits: { tokens: 1000 } });
    Object.assign(json.agents["reader"]!, { limits: { tokens: 40 } });
    const { engine, end, output } = await run(json, [
      delegate("reader", "Read"),
      { text: "x".repeat(39), end: "length" },
      "Done.",
    ]);
    const [boss, reader] = engine.generations;
    expect(boss!.request.maxTokens).toBe(1000);
    expect(reader!.request.maxTokens).toBe(40);
    expect(end).toMatchObject({
      outcome: "ok",
      content: `${output}\n\n[the agent reader was cut: there is no more room for its answer]`,
    });
    // What the reader said is no longer there for the boss.
    const own = boss!.tokens.length - boss!.request.prompt.length;
    const resumed = boss!.resumes[0]!;
    const spoken = own - resumed.tokens.length - "Done.".length - 1;
    expect(resumed.maxTokens).toBe(1000 - spoken - 39);
  });

  test("tokens: with too few left nobody is sent", async () => {
    const json = structuredClone(team);
    Object.assign(json.agents["boss"]!, { limits: { tokens: 100 } });
    const { engine, end } = await run(json, [delegate("reader", "Read"), "Done."]);
    expect(engine.generations).toHaveLength(1);
    expect(end).toMatchObject({ outcome: "error" });
    expect(end?.type === "tool-end" && end.content).toContain("too few tokens are left");
  });

  test("calls: those beyond the limit are not run", async () => {
    const json = structuredClone(team);
    Object.assign(json.agents["boss"]!, { limits: { calls: 1 } });
    const { engine } = await run(json, [
      `${delegate("reader", "one")}\n${delegate("reader", "two")}`,
      "First.",
      "Done.",
    ]);
    const told = engine.generations[0]!.resumes.map(({ tokens }) => engine.spell(tokens));
    expect(told[0]).toContain("First.");
    expect(told[0]).toContain("the limit of 1 tool calls is reached");
  });

  test("rounds: an agent's limit goes before the server's", async () => {
    const json = structuredClone(team);
    Object.assign(json.agents["boss"]!, { limits: { rounds: 1 } });
    const { engine, finish } = await run(json, [
      delegate("reader", "one"),
      "First.",
      delegate("reader", "two"),
    ]);
    expect(engine.generations).toHaveLength(2);
    expect(finish).toMatchObject({ type: "finish", reason: "stop" });
  });

  test("seconds: a sub-agent is cut with what it has said, its caller goes on", async () => {
    const json = structuredClone(team);
    Object.assign(json.agents["reader"]!, { limits: { seconds: 1 } });
    const { content, end } = await run(json, [
      delegate("reader", "Read"),
      { text: "Slow", end: "never" },
      "Done.",
    ]);
    expect(content).toBe("Done.");
    expect(end).toMatchObject({
      content: "Slow\n\n[the agent reader was cut: the limit of 1 seconds is reached]",
    });
  });

  test("seconds: a sub-agent ends before its caller's time is over, who answers yet", async () => {
    const json = structuredClone(team);
    // A tenth of it is left for the answer.
    Object.assign(json.agents["boss"]!, { limits: { seconds: 5 } });
    const { content, end, finish } = await run(json, [
      delegate("reader", "Read"),
      { text: "Slow", end: "never" },
      "Done.",
    ]);
    expect([content, finish?.type === "finish" && finish.reason]).toEqual(["Done.", "stop"]);
    expect(end).toMatchObject({ outcome: "ok" });
    expect(end?.type === "tool-end" && end.content).toMatch(
      /^Slow\n\n\[the agent reader was cut: the limit of [34](\.\d)? seconds is reached\]$/,
    );
  });

  test("seconds: at the top the answer ends with length, not as cancelled", async () => {
    const json = structuredClone(team);
    Object.assign(json.agents["boss"]!, { limits: { seconds: 1 } });
    const { content, finish, agentRun } = await run(json, [{ text: "Slow", end: "never" }]);
    expect([content, finish?.type === "finish" && finish.reason]).toEqual(["Slow", "length"]);
    expect(agentRun.cut).toBe("the limit of 1 seconds is reached");
  });
});

test("a sub-agent that fails is an error to its caller, with what it had said", async () => {
  const { end, content } = await run(team, [
    delegate("reader", "Read"),
    { text: "So far", end: "fail" },
    "I am sorry.",
  ]);
  expect(end).toMatchObject({
    outcome: "error",
    content: "So far\n\n[the agent reader failed: The engine failed.]",
  });
  expect(content).toBe("I am sorry.");
});

test("one without an answer is an error too", async () => {
  const { end } = await run(team, [delegate("reader", "Read"), "", "I am sorry."]);
  expect(end).toMatchObject({
    outcome: "error",
    content: "Error: the agent reader ended without an answer",
  });
});

test("arguments that name nobody", async () => {
  const { end } = await run(team, [delegate("writer", "Write"), "I am sorry."]);
  expect(end?.type === "tool-end" && end.content).toBe(
    "Error: not run: name one of the agents reader and its task.",
  );
});

test("cancelling the supervisor cancels what runs below it", async () => {
  const abort = new AbortController();
  const world = setUp([delegate("reader", "Read"), { text: "Endless", end: "never" }]);
  const directory = agentDirectory(team, world.chat, { tools: () => [readFile] });
  const agentRun = new AgentRun(directory.find("boss")!, (name) => directory.find(name));
  const events: Event[] = [];
  await agentRun.answer(request({ signal: abort.signal }), agentRun.tools, {}, async (event) => {
    events.push(event);
    if (event.type === "tool-report" && event.report.type === "output") abort.abort();
  });
  expect(events.at(-1)).toMatchObject({ type: "finish", reason: "cancelled" });
  await new Promise((resolve) => setImmediate(resolve));
  expect(world.engine.generations.map(({ cancelled }) => cancelled)).toEqual([true, true]);
});

test("what a call delegates can be read off it", () => {
  const it = { id: "1", name: "delegate", arguments: '{"agent":"a","task":"t"}' };
  expect(delegationOf(it, "agent")).toEqual({ agent: "a", task: "t" });
  expect(delegationOf(it, "files")).toBeNull();
  expect(delegationOf({ ...it, arguments: '{"agent":1}' }, "agent")).toBeNull();
  expect(delegationOf({ ...it, arguments: "{" }, "agent")).toBeNull();
});
