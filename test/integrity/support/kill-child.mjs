// A server with a store, its model a fake.
//   node kill-child.mjs <store file or address> [<file of calls> [<port> <name of the replica>]]
// Without a file of calls the model writes the words of `wordsOf`, a token each; with FAKE_UNFINISHED in the environment
// the last of "long" words never comes. With a file of calls it calls three
// tools and then answers: each call writes a line to the file when it begins, so that the tool itself counts. "save" asks a
// person where the API can ask one, "note" changes something, "look" only reads. Asked for "response ..." it calls "send" in
// place of "save", which asks nobody by itself.
// Prints its port.
import { appendFileSync } from "node:fs";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { AgentDirectory } from "../../../dist/agents/agent-directory.js";
import { parseAgentsConfig } from "../../../dist/agents/agents-config.js";
import { buildServer } from "../../../dist/server/app.js";
import { openPostgresStore } from "../../../dist/store/postgres/postgres-store.js";
import { SqliteStore } from "../../../dist/store/sqlite/sqlite-store.js";
import { Approvals } from "../../../dist/tools/approvals.js";
import { wordsOf } from "./kill-words.mjs";

const unfinished = process.env.FAKE_UNFINISHED !== undefined;
const [, , path, counted, port = "0", replica] = process.argv;

const usage = {
  promptTokens: 20,
  cachedTokens: 0,
  resumedTokens: 0,
  prefilledTokens: 20,
  recomputedTokens: 0,
  generatedTokens: 7,
};

const tool = (name, options) => ({
  definition: { name, parameters: { type: "object" } },
  server: "files",
  ...options,
  async call({ of }) {
    appendFileSync(counted, `${name} ${of}\n`);
    await setTimeout(Math.random() * 30);
    return { content: `${name} of ${of}: done`, isError: false };
  },
});
const tools = [
  tool("save", { approval: "always" }),
  tool("send", {}),
  tool("note", {}),
  tool("look", { readOnly: true }),
];

/**
 * A token for each event, as an engine draws them: what an earlier process has drawn of a round is told once more, at once.
 * @param longestMs how long a token takes at most
 */
async function* drawn(events, { written, onTokens }, longestMs) {
  const known = written?.tokens.length ?? 0;
  for (const [index, event] of events.entries()) {
    if (index >= known) {
      if (longestMs > 0) await setTimeout(Math.random() * longestMs);
      onTokens?.(index + 1, [index]);
    }
    yield event;
  }
}

async function* words(request) {
  const { signal, messages } = request;
  const all = wordsOf(messages.at(-1).content);
  const hangs = unfinished && all.length > 60;
  const said = (hangs ? all.slice(0, -1) : all).map((text) => ({ type: "content", text }));
  for await (const event of drawn(said, request, 8)) {
    if (signal?.aborted) break;
    yield event;
  }
  if (hangs && !signal?.aborted) await once(signal, "abort");
  yield { type: "finish", reason: signal?.aborted ? "cancelled" : "stop", calls: [], usage };
}

function callsOf(system, of) {
  if (system === "You plan.") {
    const args = { agent: "worker", task: of };
    return [{ id: `delegate_${of}`, name: "delegate", arguments: JSON.stringify(args) }];
  }
  const special = { response: ["send", "note", "look"], held: ["ask_client"] };
  const names = special[of.split(" ")[0]] ?? ["save", "note", "look"];
  return names.map((name) => ({ id: `${name}_${of}`, name, arguments: JSON.stringify({ of }) }));
}

async function* calls(request, resumed) {
  const { messages, signal } = request;
  let { written } = request;
  const of = messages.find(({ role }) => role === "user").content;
  const system = messages[0].role === "system" ? messages[0].content : "";
  let results = messages.filter(({ role }) => role === "tool");
  if (results.length === 0) {
    const made = callsOf(system, of);
    yield* drawn(
      made.flatMap((call, index) => [
        { type: "call-start", index, id: call.id, name: call.name },
        { type: "call-arguments", index, delta: call.arguments },
        { type: "call-end", index, call },
      ]),
      request,
      8,
    );
    yield { type: "hold", calls: made, usage };
    written = undefined;
    const gone = new Promise((resolve) => signal.addEventListener("abort", () => resolve([])));
    results = await Promise.race([resumed, gone]);
    if (results === null) {
      yield { type: "finish", reason: "tool_calls", calls: made, usage };
      return;
    }
  }
  const said = results.map(({ content }, index) => ({
    type: "content",
    text: index === 0 ? content : ` | ${content}`,
  }));
  yield* drawn(said, { ...request, written }, 30);
  yield { type: "finish", reason: signal.aborted ? "cancelled" : "stop", calls: [], usage };
}

const chat = {
  counters: { rerenders: 0, splices: 0, resumes: 0, truncatedResults: 0 },
  turnMemory: { used: 0, limit: 0 },
  countPromptTokens: async () => 20,
  generate(request) {
    let resume;
    const resumed = new Promise((resolve) => (resume = resolve));
    const iterator = counted === undefined ? words(request) : calls(request, resumed);
    return {
      [Symbol.asyncIterator]: () => iterator,
      extend() {},
      resume: async (outputs) => (resume(outputs), false),
      release: () => resume(null),
      cancel: () => resume([]),
    };
  },
};

const agents = {
  supervisor: "boss",
  agents: {
    boss: { description: "Plans", instructions: "You plan." },
    worker: { description: "Works", instructions: "You work.", tools: { files: "*" } },
  },
};
const provider = { tools: () => tools, close: async () => {} };
const sampling = { temperature: 0, topP: 1, topK: 0, minP: 0 };

const limits = { maxCount: 100_000 };
const store = path.startsWith("postgres:")
  ? await openPostgresStore(path, { limits })
  : new SqliteStore(path, { limits });
const app = buildServer(
  {
    chat,
    engine: {
      model: { addBos: false },
      stats: () => ({ ...usage, running: 0, waiting: 0, held: 0 }),
      onStep() {},
      onTokenInterval() {},
    },
    tools: counted === undefined ? null : provider,
    agents: new AgentDirectory(parseAgentsConfig(agents, "agents.json", {}), {
      served: { chat, contextSize: 1000, vocabularySize: 500, sampling },
      files: new Map(),
      tools: provider,
    }),
    approvals: new Approvals({ timeoutMs: 3_600_000 }),
    audit: null,
    store,
    branches: store.branches,
    shared: store.shared,
    model: { id: "fake", created: 0, contextSize: 1000, vocabularySize: 500 },
  },
  { apiKeys: [], sampling, replica },
);
await app.listen({ port: Number(port), host: "127.0.0.1" });
process.stdout.write(`${app.server.address().port}\n`);
