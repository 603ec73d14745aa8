// A server with a store, its model a fake that writes some words; asked for "endless" ones it never stops.
//   node store-kill-child.mjs <store file>
// Prints its port.
import { setTimeout } from "node:timers/promises";
import { buildServer } from "../../dist/server/app.js";
import { SqliteStore } from "../../dist/store/sqlite/sqlite-store.js";
import { Approvals } from "../../dist/tools/approvals.js";

const usage = {
  promptTokens: 20,
  cachedTokens: 0,
  resumedTokens: 0,
  prefilledTokens: 20,
  recomputedTokens: 0,
  generatedTokens: 7,
};

const chat = {
  counters: { rerenders: 0, splices: 0, resumes: 0, truncatedResults: 0 },
  countPromptTokens: async () => 20,
  generate({ signal, messages }) {
    const isEndless = messages.at(-1).content.includes("endless");
    async function* events() {
      const words = isEndless ? Infinity : Math.floor(Math.random() * 12);
      for (let word = 0; word <= words && !signal?.aborted; word++) {
        yield { type: "content", text: `word ${word} ` };
        await setTimeout(Math.random() * 8);
      }
      const reason = signal?.aborted ? "cancelled" : "stop";
      yield { type: "finish", reason, calls: [], usage };
    }
    const iterator = events();
    return {
      [Symbol.asyncIterator]: () => iterator,
      resume: async () => {},
      release() {},
      cancel() {},
    };
  },
};

const store = new SqliteStore(process.argv[2], { limits: { maxCount: 100_000 } });
const app = buildServer(
  {
    chat,
    engine: {
      model: { addBos: false },
      stats: () => ({ ...usage, running: 0, waiting: 0, held: 0 }),
      onStep() {},
      onTokenInterval() {},
    },
    tools: null,
    approvals: new Approvals(),
    audit: null,
    store,
    branches: store.branches,
    model: { id: "fake", created: 0, contextSize: 1000, vocabularySize: 500 },
  },
  { apiKeys: [], sampling: { temperature: 0, topP: 1, topK: 0, minP: 0 } },
);
await app.listen({ port: 0, host: "127.0.0.1" });
process.stdout.write(`${app.server.address().port}\n`);
