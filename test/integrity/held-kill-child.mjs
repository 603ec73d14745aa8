// A server with a store whose model, a fake, calls three tools and then answers. Each call writes a line to a file
// when it begins: the tool itself counts. "save" asks a person, "note" changes something, "look" only reads.
//   node held-kill-child.mjs <store file> <file of calls>
// Prints its port.
import { appendFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { buildServer } from "../../dist/server/app.js";
import { SqliteStore } from "../../dist/store/sqlite/sqlite-store.js";
import { Approvals } from "../../dist/tools/approvals.js";

const [, , path, counted] = process.argv;

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
  tool("note", {}),
  tool("look", { readOnly: true }),
];

const chat = {
  counters: { rerenders: 0, splices: 0, resumes: 0, truncatedResults: 0 },
  countPromptTokens: async () => 20,
  generate({ messages, signal }) {
    const of = messages.find(({ role }) => role === "user").content;
    const results = messages.filter(({ role }) => role === "tool");
    let resume;
    const resumed = new Promise((resolve) => (resume = resolve));
    async function* events() {
      let read = results;
      if (results.length === 0) {
        const calls = tools.map(({ definition: { name } }) => ({
          id: `${name}_${of}`,
          name,
          arguments: JSON.stringify({ of }),
        }));
        for (const [index, call] of calls.entries()) {
          yield { type: "call-start", index, id: call.id, name: call.name };
          yield { type: "call-arguments", index, delta: call.arguments };
          yield { type: "call-end", index, call };
        }
        yield { type: "hold", calls, usage };
        const gone = new Promise((resolve) => signal.addEventListener("abort", () => resolve([])));
        read = await Promise.race([resumed, gone]);
      }
      yield { type: "content", text: read.map(({ content }) => content).join(" | ") };
      yield { type: "finish", reason: signal.aborted ? "cancelled" : "stop", calls: [], usage };
    }
    const iterator = events();
    return {
      [Symbol.asyncIterator]: () => iterator,
      extend() {},
      resume: async (outputs) => (resume(outputs), false),
      release() {},
      cancel: () => resume([]),
    };
  },
};

const store = new SqliteStore(path, { limits: { maxCount: 100_000 } });
const app = buildServer(
  {
    chat,
    engine: {
      model: { addBos: false },
      stats: () => ({ ...usage, running: 0, waiting: 0, held: 0 }),
      onStep() {},
      onTokenInterval() {},
    },
    tools: { tools: () => tools, close: async () => {} },
    approvals: new Approvals({ timeoutMs: 3_600_000 }),
    audit: null,
    store,
    branches: store.branches,
    model: { id: "fake", created: 0, contextSize: 1000, vocabularySize: 500 },
  },
  { apiKeys: [], sampling: { temperature: 0, topP: 1, topK: 0, minP: 0 } },
);
await app.listen({ port: 0, host: "127.0.0.1" });
process.stdout.write(`${app.server.address().port}\n`);
