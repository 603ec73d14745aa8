/**
 * Thousands of generated turns: server, chat layer, tool loop and store are the real ones; the engine is a
 * fake whose rounds are written here. test/e2e/responses-grammar.test.ts runs the same over the real one.
 */

import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Chat } from "../../src/chat/chat.ts";
import { buildServer } from "../../src/server/app.ts";
import { Approvals } from "../../src/tools/approvals.ts";
import type { Tool } from "../../src/tools/types.ts";
import { everyEnd, runTurns, type TurnWorld } from "../support/responses-turns.ts";
import { greedy } from "../support/sampling.ts";
import { type StoreWorld, storeWorld } from "../support/store-worlds.ts";
import { chatml } from "../unit/chat/chat-fixtures.ts";
import { FakeEngine, type ScriptedRound } from "../unit/chat/fake-engine.ts";
import { fakeTool, provider } from "./fake-services.ts";
import { idleStats, usage } from "./fake-figures.ts";
import { FakeTextEngine } from "./fake-text-engine.ts";

const turnCount = Number(process.env["FERMATA_GRAMMAR_TURNS"] ?? 1500);
/** Of the fake folder, which has `notes.txt` alone. */
const readTextFile: Tool = {
  ...fakeTool("read_text_file", { content: "At nine.", isError: false }),
  call: async (args) =>
    (args as { path: string }).path.endsWith("notes.txt")
      ? { content: "At nine.", isError: false }
      : { content: "There is no such file.", isError: true },
};
/** Who answers has all the time, who does not is not waited for. */
const patientMs = 60_000;
const hastyMs = 100;
const config = { apiKeys: [], sampling: greedy, responsesToolTimeoutMs: patientMs };
let app: FastifyInstance;
let stored: StoreWorld;
let store: Awaited<ReturnType<StoreWorld["open"]>>;
let world: TurnWorld;
const folder = mkdtempSync(join(tmpdir(), "fermata-grammar-"));

beforeAll(async () => {
  // A template that knows reasoning.
  const engine = new FakeEngine({ template: `${chatml}{# <think> #}` });
  const zero = { ...idleStats, ...usage };
  stored = await storeWorld();
  store = await stored.open();
  app = buildServer(
    {
      chat: new Chat(engine),
      engine: {
        ...new FakeTextEngine(),
        model: engine.model,
        stats: () => zero,
        onStep: () => {},
        onTokenInterval: () => {},
      },
      tools: provider(readTextFile),
      approvals: new Approvals(),
      audit: null,
      store,
      model: { id: "tiny", created: 0, contextSize: 100_000, parallel: 2, vocabularySize: 2000 },
    },
    config,
  );
  await app.listen({ port: 0, host: "127.0.0.1" });
  world = {
    url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
    folder,
    mcpServer: "files",
    canFail: true,
    async script(userMessage, turns, kind) {
      config.responsesToolTimeoutMs = kind === "expired" ? hastyMs : patientMs;
      const rounds = turns.map((text): ScriptedRound => ({ text }));
      if (kind === "truncated") {
        const at = Number(userMessage.split(" ")[1]) % rounds[0]!.text.length;
        rounds[0] = { text: rounds[0]!.text.slice(0, at), end: "length" };
      }
      if (kind === "cancelled") rounds[0] = { ...rounds[0]!, end: "never" };
      if (kind === "failed") rounds[0] = { ...rounds[0]!, end: "fail" };
      // What a turn that was cut did not say is no one's.
      engine.rounds.splice(0, engine.rounds.length, ...rounds);
    },
  };
});

afterAll(async () => {
  await app.close();
  await store.close();
  await stored.remove();
  rmSync(folder, { recursive: true, force: true });
});

test(`${turnCount} generated turns keep to the grammar`, { timeout: 600_000 }, async () => {
  // One after the other: the fake engine says what is written to whoever comes.
  const ends = await runTurns(world, turnCount, 1);
  const seen = [...ends.keys()].join("\n");
  for (const end of [...everyEnd, "failed: failed function_call"]) expect(seen).toContain(end);
});
