// Generated turns through the real server and engine, the choice of tokens scripted. Thousands more run over
// a fake engine in test/contract/responses-grammar.test.ts.
import { afterAll, beforeAll, expect, test } from "vitest";
import { everyEnd, runTurns, type TurnWorld } from "../support/responses-turns.ts";
import { type ScriptedServer, startScriptedServer } from "../support/scripted-server.ts";

const turnCount = Number(process.env["FERMATA_GRAMMAR_TURNS"] ?? 48);
const together = 8;
const endless = "harbour ".repeat(2000);

let server: ScriptedServer;

beforeAll(async () => {
  server = await startScriptedServer({
    files: { "notes.txt": "At nine." },
    store: true,
    thinks: true,
    engine: { threads: 1 },
    // Long enough for those who answer; one turn waits for its end.
    config: { responsesToolTimeoutMs: 10_000 },
  });
});

afterAll(() => server.close());

test(`${turnCount} generated turns keep to the grammar`, { timeout: 1_800_000 }, async () => {
  const world: TurnWorld = {
    ...server,
    canFail: false,
    // One that is cancelled does not end before.
    script: (userMessage, turns, kind) =>
      server.script(userMessage, kind === "cancelled" ? [endless + turns[0]!] : turns),
  };
  const ends = await runTurns(world, turnCount, together);
  expect([...ends.keys()].join("\n")).toSatisfy((seen: string) =>
    everyEnd.every((end) => seen.includes(end)),
  );
});
