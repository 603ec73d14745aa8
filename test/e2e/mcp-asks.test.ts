// MCP servers that ask while their tool runs: the model (sampling), while the calling sequence is held, and the person
// (elicitation). Which tools are called is scripted; what the model answers to a server is not.
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import type { Conversation, Question, RunStarted } from "../../src/client/types.ts";
import { parseMcpConfig } from "../../src/mcp/config.ts";
import { McpHost } from "../../src/mcp/host.ts";
import { eventually } from "../support/eventually.ts";
import { hasPython, openTerminal } from "../support/terminal.ts";
import { callText, type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

const asking = fileURLToPath(new URL("../fixtures/mcp/asking.mjs", import.meta.url));
const everything = createRequire(import.meta.url).resolve(
  "@modelcontextprotocol/server-everything/dist/index.js",
);
const question = "Use the tool.";

let server: ScriptedServer | undefined;
let notes: object[] = [];
afterEach(async () => {
  await server?.close();
  server = undefined;
  notes = [];
});

interface World {
  args?: string[];
  settings?: object;
  parallel?: number;
  contextSize?: number;
  asksPerson?: boolean;
}

async function start({
  args = [asking],
  settings = {},
  parallel = 1,
  contextSize = 6144,
  asksPerson = false,
}: World): Promise<ScriptedServer> {
  const json = { mcpServers: { it: { command: process.execPath, args, ...settings } } };
  const log = {
    debug() {},
    info: (fields: object, message: string) => void notes.push({ ...fields, message }),
    warn() {},
  };
  const host = new McpHost(parseMcpConfig(json, "mcp.json"), {
    log,
    version: "0.0.0-test",
    mustStart: true,
    model: "fermata-small",
  });
  server = await startScriptedServer({
    host,
    engine: { parallel, contextSize, threads: 1 },
    config: { asksPerson },
  });
  return server;
}

async function call<Result>(method: string, path: string, body?: object): Promise<Result> {
  const response = await fetch(`${server!.url}${path}`, {
    method,
    headers: { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const json = (await response.json()) as Result;
  if (!response.ok)
    throw Object.assign(new Error(JSON.stringify(json)), { status: response.status });
  return json;
}

interface Waiting {
  call_id: string;
  question: Question;
}

/** A conversation whose model calls the tool. */
async function begin(tool: string, args: Record<string, unknown>) {
  await server!.script(question, [callText(tool, args), "Done."]);
  const { id } = await call<Conversation>("POST", "/api/conversations", {});
  const run = await call<RunStarted>("POST", `/api/conversations/${id}/runs`, {
    message: question,
  });
  return {
    asked: () =>
      eventually(async () => {
        const { approvals } = await call<{ approvals: Waiting[] }>("GET", "/api/approvals");
        expect(approvals).toHaveLength(1);
        return approvals[0]!;
      }),
    ended: () =>
      eventually(async () => {
        const { messages } = await call<Conversation>("GET", `/api/conversations/${id}`);
        expect(messages[1]!.status).toBe("complete");
        expect(messages[1]!.message).toContain("Done.");
        return messages[1]!.tool_calls[0]!;
      }),
    events: async () => {
      const path = `/api/conversations/${id}/stream?run_id=${run.run_id}&details=1`;
      return await (await fetch(`${server!.url}${path}`)).text();
    },
  };
}

const decide = (id: string, body: object): Promise<object> =>
  call("POST", `/api/approvals/${id}`, body);

test("without sampling in its configuration, a server may not ask the model", async () => {
  await start({});
  const args = { prompt: "Hi", maxTokens: 4, context: "none", times: 1 };
  const { ended } = await begin("ask_model", args);
  expect((await ended()).tool_response).toContain("Method not found");
});

test("the model answers a server as it answers a chat, in the one place that the held caller left", async () => {
  await start({ settings: { sampling: true } });
  const prompt = "Say hello.";
  const args = { prompt, maxTokens: 12, context: "none", times: 1 };
  const { ended } = await begin("ask_model", args);
  const [answer] = JSON.parse((await ended()).tool_response) as { content: { text: string } }[];
  const completion = await server!.client.chat.completions.create({
    model: "fermata-small",
    messages: [{ role: "user", content: prompt }],
    max_tokens: 12,
    temperature: 0,
    tools: [],
  });
  expect(answer).toEqual({
    model: "fermata-small",
    role: "assistant",
    content: { type: "text", text: completion.choices[0]!.message.content },
    stopReason: completion.choices[0]!.finish_reason === "length" ? "maxTokens" : "endTurn",
  });
  const { prefilledTokens, promptTokens, cachedTokens, resumedTokens } =
    await server!.settledStats();
  // The held caller lost nothing.
  expect(prefilledTokens).toBe(promptTokens - cachedTokens + resumedTokens);
});

test("a question that is longer than the context is refused, and the caller goes on", async () => {
  await start({ settings: { sampling: true }, contextSize: 1536 });
  const args = { prompt: "Say harbour. ", repeat: 250, maxTokens: 4, context: "none", times: 2 };
  const { ended } = await begin("ask_model", args);
  const answers = JSON.parse((await ended()).tool_response) as object[];
  const message = expect.stringMatching(
    /maximum context length is 1536 tokens; .* take \d+/,
  ) as string;
  expect(answers).toEqual([
    { code: -1, message },
    { code: -1, message },
  ]);
});

test("a question that was refused has drawn none of the call's tokens", async () => {
  await start({ settings: { sampling: { maxTokens: 4 } }, contextSize: 1536 });
  const args = { prompt: "Say harbour. ", repeat: 250, maxTokens: 4, context: "none", times: 2 };
  const { ended } = await begin("ask_model", { ...args, inTurn: true });
  const answers = JSON.parse((await ended()).tool_response) as { message: string }[];
  for (const { message } of answers) expect(message).toContain("maximum context length");
  expect(answers).toHaveLength(2);
});

test("more callers are held than there are slots, and each has its answer", async () => {
  await start({ settings: { sampling: true }, contextSize: 1536 });
  const args = { prompt: "Say harbour. ", repeat: 100, maxTokens: 4, context: "none", times: 2 };
  const runs = [];
  for (let count = 0; count < 5; count++) runs.push(await begin("ask_model", args));
  for (const { ended } of runs) {
    const answers = JSON.parse((await ended()).tool_response) as object[];
    expect(answers).toEqual([
      expect.objectContaining({ stopReason: expect.any(String) }),
      expect.objectContaining({ stopReason: expect.any(String) }),
    ]);
  }
  expect((await server!.settledStats()).held).toBe(0);
});

test("all answers to one call have one limit of tokens", async () => {
  await start({ settings: { sampling: { maxTokens: 6 } } });
  const args = { prompt: "Count to a hundred.", maxTokens: 4, context: "none", times: 3 };
  const { ended } = await begin("ask_model", args);
  const answers = JSON.parse((await ended()).tool_response) as {
    stopReason?: string;
    message?: string;
  }[];
  expect(answers.map(({ stopReason }) => stopReason)).toEqual([
    "maxTokens",
    "maxTokens",
    undefined,
  ]);
  expect(answers[2]!.message).toContain("sampling.maxTokens");
});

test("with the caller's messages only what is new is computed, and only where the operator allows it", async () => {
  const args = { prompt: "What did the user ask?", maxTokens: 2, context: "thisServer", times: 1 };
  const cached = async (sampling: object): Promise<number> => {
    await start({ settings: { sampling }, parallel: 2 });
    const { ended } = await begin("ask_model", args);
    await ended();
    const { cachedTokens } = await server!.settledStats();
    await server!.close();
    return cachedTokens;
  };
  const apart = await cached({ context: false });
  const together = await cached({ context: true });
  // The prompt has the definitions of three tools, and all of it is found.
  expect(together - apart).toBeGreaterThan(300);
});

test("a person who looks on is asked before the model is, and may say no", async () => {
  await start({ settings: { sampling: true, approval: "never" }, asksPerson: true });
  const args = { prompt: "Say hello.", maxTokens: 4, context: "none", times: 1 };
  const first = await begin("ask_model", args);
  const { call_id: id, question: asked } = await first.asked();
  expect(asked.message).toBe("it asks the model (at most 4 tokens): Say hello.");
  await decide(id, { decision: "deny" });
  const refused = await first.ended();
  expect(refused.tool_response).toContain("The user does not want the model to be asked.");
  // The call itself ran.
  expect(refused.tool_call_details.approval).toBeUndefined();
});

test("a reference server's sampling tool", async () => {
  await start({ args: [everything, "stdio"], settings: { sampling: true } });
  const { ended } = await begin("trigger-sampling-request", { prompt: "Hi", maxTokens: 5 });
  expect((await ended()).tool_response).toMatch(
    /^LLM sampling result: \n\{\n {2}"model": "fermata-small"/,
  );
});

test("a person's answer reaches the server once it fits the question", async () => {
  await start({});
  const { asked, ended, events } = await begin("ask_person", {});
  const { call_id: id, question: said } = await asked();
  expect(said).toMatchObject({
    message: "Which color?␛[2J",
    schema: { properties: { color: { enum: ["red", "blue"] } }, required: ["color"] },
  });
  for (const content of [{}, { color: "green" }, { color: "red", count: 10 }, undefined]) {
    await expect(decide(id, { decision: "approve", content })).rejects.toMatchObject({
      status: 400,
    });
  }
  await decide(id, { decision: "approve", content: { color: "red", count: 9 } });
  const told = await ended();
  expect(JSON.parse(told.tool_response)).toEqual({
    action: "accept",
    content: { color: "red", count: 9 },
  });
  const stream = await events();
  expect(stream).toContain('"state":"asked","question":{"message":"Which color?');
  expect(stream).not.toContain('"state":"denied"');
});

test.each([
  ["deny", "decline"],
  ["cancel", "cancel"],
])("%s of a person is %s to the server, and the call goes on", async (decision, action) => {
  await start({});
  const { asked, ended } = await begin("ask_person", {});
  await decide((await asked()).call_id, { decision });
  expect(JSON.parse((await ended()).tool_response)).toEqual({ action });
});

test("a page to open is shown, and only of the web", async () => {
  await start({});
  const first = await begin("send_person", { url: "https://example.com/login" });
  const { call_id: id, question: said } = await first.asked();
  expect(said).toEqual({ message: "Sign in.", url: "https://example.com/login" });
  await decide(id, { decision: "approve" });
  expect(JSON.parse((await first.ended()).tool_response)).toEqual({ action: "accept" });
  const second = await begin("send_person", { url: "file:///etc/passwd" });
  expect((await second.ended()).tool_response).toContain("only http and https");
});

test.skipIf(!hasPython)(
  "at a terminal the fields are asked one by one, again if they do not fit",
  async () => {
    await start({});
    await server!.script(question, [callText("ask_person", {}), "Done."]);
    const terminal = openTerminal(["chat", "--url", server!.url], {
      env: { HOME: server!.folder },
    });
    await terminal.expect("> ");
    terminal.send(`${question}\r`);
    await terminal.expect(/it asks:.* Which color\?/);
    await terminal.expect("color (red, blue): ");
    terminal.send("gre\u007f\u007f\u007fred\r");
    await terminal.expect("count (may be empty): ");
    terminal.send("10\r");
    await terminal.expect("Send it? [y]es, [n]o ");
    terminal.send("y");
    await terminal.expect("does not fit the question: /count must be <= 9");
    await terminal.expect("color (red, blue): ");
    terminal.send("blue\r");
    await terminal.expect("count (may be empty): ");
    terminal.send("\r");
    await terminal.expect("Send it? [y]es, [n]o ");
    terminal.send("y");
    await terminal.expect('{"action":"accept","content":{"color":"blue"}}');
    await terminal.expect("Done.");
    await terminal.expect("> ");
    terminal.send("\u0004");
    expect(await terminal.exitCode).toBe(0);
  },
);

test.skipIf(!hasPython).each([
  ["y", '{"action":"accept","content":{"color":"blue"}}', true],
  ["n", "denied: ask_person", false],
])("at a terminal a call that may change something is asked about: %s", async (key, said, runs) => {
  await start({ asksPerson: true });
  await server!.script(question, [callText("ask_person", {}), "Done."]);
  const terminal = openTerminal(["chat", "--url", server!.url], {
    env: { HOME: server!.folder },
  });
  await terminal.expect("> ");
  terminal.send(`${question}\r`);
  await terminal.expect("ask_person");
  await terminal.expect("Allow it? [y]es, [n]o, [a]lways ");
  terminal.send(key);
  if (runs) {
    await terminal.expect("color (red, blue): ");
    terminal.send("blue\r");
    await terminal.expect("count (may be empty): ");
    terminal.send("\r");
    await terminal.expect("Send it? [y]es, [n]o ");
    terminal.send("y");
  }
  await terminal.expect(said);
  await terminal.expect("Done.");
  await terminal.expect("> ");
  terminal.send("\u0004");
  expect(await terminal.exitCode).toBe(0);
});

test("where nobody looks on, a question is cancelled at once and the log says so", async () => {
  await start({});
  await server!.script(question, [callText("ask_person", {}), "Done."]);
  const completion = await server!.client.chat.completions.create({
    model: "fermata-small",
    messages: [{ role: "user", content: question }],
  });
  expect(completion.choices[0]!.message.content).toContain("Done.");
  expect(notes).toContainEqual(
    expect.objectContaining({ server: "it", reason: expect.stringContaining("nobody looks on") }),
  );
});
