/** A server with a store in a file, which is copied as a kill would leave it, and the next server on the copy. */

import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { afterEach, beforeEach } from "vitest";
import type { Run } from "./ended-run.ts";
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
