/** A server with a store in a file, which is copied as a kill would leave it, and the next server on the copy. */

import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { afterEach, beforeEach, expect } from "vitest";
import {
  applyEvent,
  type ConversationState,
  emptyState,
} from "../../src/client/conversation-state.ts";
import type { ConversationEvent } from "../../src/client/types.ts";
import { eventually } from "../support/eventually.ts";
import { checkStream } from "../support/stream-check.ts";
import type { World } from "./fake-services.ts";
import type { Json } from "./responses-world.ts";

/** Of the test that runs. */
let folder: string;

/** Each test of the file has a folder of its own. @returns paths in it */
export function storeFolder(): (name: string) => string {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "fermata-written-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  return (name) => join(folder, name);
}

/** The store as it is now, as if its process had been killed. */
export function copyOf(path: string, name: string): string {
  const copy = join(folder, name);
  for (const end of ["", "-wal"]) if (existsSync(path + end)) copyFileSync(path + end, copy + end);
  return copy;
}

/** As if its process was gone. */
export function forgetProcesses(path: string): void {
  const database = new Database(path);
  database.exec("DELETE FROM runs; UPDATE responses SET run = NULL WHERE run IS NOT NULL");
  database.close();
}

interface Run {
  id: string;
  runId: string;
}

export async function begin(
  { app }: Pick<World, "app">,
  message: string,
  conversation: object = {},
): Promise<Run> {
  const post = async (url: string, payload: object): Promise<Json> =>
    (await app.inject({ method: "POST", url, payload })).json() as Json;
  const { id } = await post("/api/conversations", conversation);
  const run = await post(`/api/conversations/${id}/runs`, { message });
  return { id, runId: run.run_id };
}

/** The answer once it has ended, and what a viewer saw of it over all processes. */
export async function ended(
  { app }: Pick<World, "app">,
  { id, runId }: Run,
): Promise<{ message: Json; state: ConversationState }> {
  const message = await eventually(async () => {
    const reply = await app.inject({ url: `/api/conversations/${id}` });
    const last = (reply.json() as Json).messages.at(-1) as Json;
    expect(last.status).not.toBe("running");
    return last;
  });
  const url = `/api/conversations/${id}/stream?run_id=${runId}&details=1`;
  const { body } = await app.inject({ url });
  const lines = body.split("\n");
  const events = lines
    .filter((line) => line.startsWith("data: "))
    .map((line) => JSON.parse(line.slice(6)) as ConversationEvent);
  const numbers = lines.filter((line) => line.startsWith("id: ")).map((line) => +line.slice(4));
  expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  checkStream(events).close();
  return { message, state: events.reduce(applyEvent, emptyState) };
}
