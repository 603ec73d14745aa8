/** Server, chat layer and tool loop over a fake engine, whose rounds are written by the test. */

import { pino } from "pino";
import { Chat } from "../../src/chat/chat.ts";
import { buildServer } from "../../src/server/app.ts";
import type { ServerServices } from "../../src/server/services.ts";
import { Approvals } from "../../src/tools/approvals.ts";
import type { Tool } from "../../src/tools/types.ts";
import { greedy } from "../support/sampling.ts";
import { chatml } from "../unit/chat/chat-fixtures.ts";
import { FakeEngine, type FakeEngineOptions } from "../unit/chat/fake-engine.ts";
import { provider } from "./fake-services.ts";
import { idleStats, usage } from "./fake-figures.ts";
import { FakeTextEngine } from "./fake-text-engine.ts";

export function engineWorld(
  rounds: FakeEngineOptions["rounds"] = ["Ok."],
  tools: Tool[] = [],
  agents?: (chat: Chat) => ServerServices["agents"],
) {
  // A template that knows reasoning.
  const engine = new FakeEngine({ template: `${chatml}{# <think> #}`, rounds });
  const chat = new Chat(engine);
  /** Every line so far, parsed. */
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: "debug" }, { write: (line) => lines.push(JSON.parse(line)) });
  const app = buildServer(
    {
      chat,
      engine: {
        ...new FakeTextEngine(),
        model: engine.model,
        stats: () => ({ ...idleStats, ...usage }),
        onStep: () => {},
        onTokenInterval: () => {},
      },
      tools: tools.length === 0 ? null : provider(...tools),
      agents: agents?.(chat),
      approvals: new Approvals(),
      audit: null,
      store: null,
      model: { id: "tiny", created: 0, contextSize: 100_000, parallel: 2, vocabularySize: 2000 },
    },
    {
      apiKeys: [],
      logger,
      sampling: greedy,
    },
  );
  return { app, engine, lines };
}
