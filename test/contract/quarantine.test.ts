/** A body that was in flight when the engine's process died, and the answers it gets from the next one. */

import { createHash } from "node:crypto";
import { afterEach, expect, test } from "vitest";
import { FermataError } from "../../src/errors.ts";
import type { ConnectionState } from "../../src/server/http/connection-reports.ts";
import { eventually } from "../support/eventually.ts";
import { createWorld, type World } from "./fake-services.ts";

const body = JSON.stringify({ messages: [{ role: "user", content: "Hi" }] });
const hash = createHash("sha256").update(body).digest("base64url");

const open: World[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map(({ app }) => app.close()));
});

interface Suspect extends Pick<World, "chat"> {
  crashes: Map<string, number>;
  /** What the supervisor is told of the body after each answer; null: nothing. */
  told: (string | null)[];
  /** @returns the status of the answer */
  send(): Promise<number>;
}

async function suspect(deaths: number): Promise<Suspect> {
  const crashes = new Map([[hash, deaths]]);
  const told: (string | null)[] = [];
  const report = (_socket: unknown, state: ConnectionState): void => {
    if (state.kind === "idle") told.push(state.answered);
  };
  const world = createWorld({ config: { crashes, connectionReports: { report } } });
  const url = await world.app.listen({ port: 0, host: "127.0.0.1" });
  open.push(world);
  const send = async (): Promise<number> => {
    const headers = { "content-type": "application/json" };
    const reply = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
    await reply.text();
    return reply.status;
  };
  return { chat: world.chat, crashes, told, send };
}

test("an answer clears it, a failure does not", async () => {
  const { chat, crashes, told, send } = await suspect(1);
  const answer = chat.script;
  chat.script = [{ fail: new FermataError("decode_failed", "The engine failed.") }];
  expect(await send()).toBe(500);
  await eventually(() => expect(told).toEqual([null]));
  expect([...crashes]).toEqual([[hash, 1]]);
  chat.script = answer;
  expect(await send()).toBe(200);
  await eventually(() => expect(told).toEqual([null, hash]));
  expect([...crashes]).toEqual([]);
});

test("after a second death it is refused, and the refusal clears nothing", async () => {
  const { chat, crashes, told, send } = await suspect(2);
  for (const count of [1, 2]) {
    expect(await send()).toBe(422);
    await eventually(() => expect(told).toHaveLength(count));
  }
  expect(told).toEqual([null, null]);
  expect(chat.requests).toEqual([]);
  expect([...crashes]).toEqual([[hash, 2]]);
});
