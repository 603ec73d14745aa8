/** Servers over one store, one after the other. */

import { afterEach, beforeEach, expect } from "vitest";
import type { ToolCall } from "../../src/chat/types.ts";
import { eventually } from "../support/eventually.ts";
import { type StoreWorld, storeWorld } from "../support/store-worlds.ts";
import type { Tool } from "../../src/tools/types.ts";
import { callEvents, createWorld, finish, type ScriptStep, type World } from "./fake-services.ts";
import { usage } from "./fake-figures.ts";
import type { Json } from "./responses-world.ts";

type Parts = Parameters<typeof createWorld>[0];

export interface RestartWorld {
  /** Of the server that runs. */
  world: World;
  store: Awaited<ReturnType<StoreWorld["open"]>>;
  /** What its model says from then on. */
  answer: ScriptStep[];
  begin(parts?: Parts): Promise<void>;
  end(): Promise<void>;
  restart(parts?: Parts): Promise<void>;
  openStore: StoreWorld["open"];
  query: StoreWorld["query"];
  send(
    method: "GET" | "POST" | "DELETE",
    url: string,
    payload?: object,
  ): Promise<{ status: number; body: Json }>;
  /** The one approval that is asked for, once it is. */
  asked(): Promise<Json>;
}

/** Each test of the file begins with an empty store and ends its last server. */
export function restartWorld(answer: ScriptStep[]): RestartWorld {
  let stored: StoreWorld;
  const served = {
    answer,
    openStore: () => stored.open(),
    query: (statement) => stored.query(statement),
    async begin(parts: Parts = {}) {
      served.store = await served.openStore();
      served.world = createWorld({
        ...parts,
        store: served.store,
        branches: served.store.branches,
      });
      served.world.chat.script = served.answer;
      await served.world.app.ready();
    },
    async end() {
      await served.world.app.close();
      await served.store.close();
    },
    async restart(parts?: Parts) {
      await served.end();
      await served.begin(parts);
    },
    async send(method, url, payload) {
      const reply = await served.world.app.inject({ method, url, ...(payload ? { payload } : {}) });
      return { status: reply.statusCode, body: reply.body === "" ? null : (reply.json() as Json) };
    },
    asked: () =>
      eventually(async () => {
        const { body } = await served.send("GET", "/api/approvals");
        expect(body.approvals).toHaveLength(1);
        return body.approvals[0] as Json;
      }),
  } as RestartWorld;
  beforeEach(async () => {
    stored = await storeWorld();
    served.answer = answer;
    await served.begin();
  });
  afterEach(async () => {
    await served.end();
    await stored.remove();
  });
  return served;
}

/** A model that says something, makes these calls and waits for their results, which this process never reads. */
export function holds(calls: readonly ToolCall[], ...said: ScriptStep[]): ScriptStep[] {
  return [
    ...said,
    ...calls.flatMap((one, index) => callEvents(one, index)),
    { type: "hold", calls: [...calls], usage },
    { type: "content", text: "not in this process" },
    finish("stop"),
  ];
}

/** A tool that writes its name into `ran` when it is called. `hangs`: its calls never end. */
export function countedTool(
  ran: string[],
  name: string,
  { hangs = false, ...parts }: Partial<Tool> & { hangs?: boolean } = {},
): Tool {
  return {
    definition: { name, parameters: { type: "object" } },
    server: "files",
    ...parts,
    async call() {
      ran.push(name);
      if (hangs) await new Promise(() => {});
      return { content: `${name}: done`, isError: false };
    },
  };
}
