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

/** As an engine would: what an earlier process wrote is told once more, at once. */
async function* words({ signal, messages, written, onTokens }) {
  const all = wordsOf(messages.at(-1).content);
  const known = written?.tokens.length ?? 0;
  for (const [index, text] of all.entries()) {
    if (signal?.aborted) break;
    if (index >= known) {
      await setTimeout(Math.random() * 8);
      if (unfinished && all.length > 60 && index === all.length - 1) await once(signal, "abort");
      onTokens?.(index + 1, [index]);
    }
    yield { type: "content", text };
  }
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

async function* calls({ messages, signal }, resumed) {
  const of = messages.find(({ role }) => role === "user").content;
  const system = messages[0].role === "system" ? messages[0].content : "";
  let results = messages.filter(({ role }) => role === "tool");
  if (results.length === 0) {
    const written = callsOf(system, of);
    for (const [index, call] of written.entries()) {
      yield { type: "call-start", index, id: call.id, name: call.name };
      yield { type: "call-arguments", index, delta: call.arguments };
      yield { type: "call-end", index, call };
    }
    yield { type: "hold", calls: written, usage };
    const gone = new Promise((resolve) => signal.addEventListener("abort", () => resolve([])));
    results = await Promise.race([resumed, gone]);
    if (results === null) {
      yield { type: "finish", reason: "tool_calls", calls: written, usage };
      return;
    }
  }
  for (const [index, { content }] of results.entries()) {
    yield { type: "content", text: index === 0 ? content : ` | ${content}` };
    // A sub-agent that is killed while it answers goes on.
    if (system === "You work.") await setTimeout(Math.random() * 30);
  }
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
