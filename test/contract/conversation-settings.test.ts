/** The settings that a conversation keeps for its runs. */

import { setTimeout } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import type { RunStarted } from "../../src/client/types.ts";
import type { BranchStore } from "../../src/store/types.ts";
import { storeWorld } from "../support/store-worlds.ts";
import {
  type ConversationsWorld,
  createConversationsWorld,
  scriptedTool,
} from "./conversations-world.ts";
import { provider } from "./fake-services.ts";

let world: ConversationsWorld;
afterEach(() => world.close());

test("a chosen tool that is gone is passed over, unless the run itself names it", async () => {
  world = await createConversationsWorld({
    tools: provider(
      scriptedTool("read_file", async () => "x"),
      scriptedTool("write_file", async () => "x"),
    ),
  });
  const tools = ["gone", "read_file"];
  const { id } = (await world.call("POST", "/api/conversations", { tools })).body;
  const path = `/api/conversations/${id}/runs`;
  const started = await world.call<RunStarted>("POST", path, { message: "Hi" });
  expect(started.status).toBe(202);
  await world.read(started.body.stream_url);
  expect(world.chat.requests.at(-1)!.tools).toMatchObject([{ name: "read_file" }]);
  // The choice stays: the tool may come back.
  expect((await world.call("GET", `/api/conversations/${id}`)).body.tools).toEqual(tools);
  const run = await world.call("POST", path, { message: "Hi", tools });
  expect(run.status).toBe(400);
  expect(run.body.error.param).toBe("tools[0]");
});

test("changes of different settings at the same time are all kept", async () => {
  const stored = await storeWorld();
  const store = await stored.open();
  world = await createConversationsWorld({ branches: slowly(store.branches) });
  const { id } = (await world.call("POST", "/api/conversations", {})).body;
  const settings = { model: "tiny", tools: ["a"], instructions: "Be brief." };
  await Promise.all(
    Object.entries(settings).map(([name, value]) =>
      world.call("PATCH", `/api/conversations/${id}`, { [name]: value }),
    ),
  );
  expect((await world.call("GET", `/api/conversations/${id}`)).body).toMatchObject(settings);
  await store.close();
  await stored.remove();
});

/** What it finds is old when it is told of, as with a database on another machine. */
function slowly(branches: BranchStore): BranchStore {
  return new Proxy(branches, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return async (...args: unknown[]): Promise<unknown> => {
        const result: unknown = await value.apply(target, args);
        await setTimeout(20);
        return result;
      };
    },
  });
}
