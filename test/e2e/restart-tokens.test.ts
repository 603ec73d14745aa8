// A call waits for a person, the server is restarted, and the person approves: the answer is the one that would have come
// without the restart, drawn tokens too, and what the cache has on disk is not computed again.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Conversation } from "../../src/client/types.ts";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { metric } from "../support/metric.ts";

let folder: string;
let server: ServedCommand;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fermata-next-"));
});
afterEach(async () => {
  await server.stop("SIGKILL");
  rmSync(folder, { recursive: true });
});

async function post<Body>(path: string, body: object): Promise<Body> {
  const headers = { "content-type": "application/json" };
  const request = { method: "POST", headers, body: JSON.stringify(body) };
  const reply = await fetch(server.url + path, request);
  expect(reply.ok).toBe(true);
  return (await reply.json()) as Body;
}

const get = async <Body>(path: string): Promise<Body> =>
  (await (await fetch(server.url + path)).json()) as Body;

/** The text and the calls of a run whose call waited, and the rows that were computed once it was approved. */
async function answer(name: string, sampling: object, isRestarted: boolean) {
  const counting = join(import.meta.dirname, "../fixtures/mcp/counting.mjs");
  const serve = () =>
    serveCommand(
      `--store=${join(folder, `${name}.sqlite`)}`,
      "--cache-disk=256",
      `--cache-dir=${join(folder, name)}`,
      `--mcp-command=${process.execPath}`,
      `--mcp-args=${counting},${join(folder, `${name}.calls`)}`,
    );
  server = await serve();
  const { id } = await post<{ id: string }>("/api/conversations", {});
  const question = { message: "What's the weather in Tokyo?", ...sampling };
  await post(`/api/conversations/${id}/runs`, question);
  const waiting = () =>
    eventually(async () => {
      type Approvals = { approvals: { call_id: string }[] };
      const { approvals } = await get<Approvals>("/api/approvals");
      expect(approvals).toHaveLength(1);
      return approvals[0]!.call_id;
    });
  const call = await waiting();
  if (isRestarted) {
    expect(await server.stop("SIGTERM")).toBe(0);
    server = await serve();
    expect(await waiting()).toBe(call);
  }
  const before = await metric(server, "fermata_prefilled_tokens_total");
  await post(`/api/approvals/${call}`, { decision: "approve" });
  const said = await eventually(async () => {
    const { messages } = await get<Conversation>(`/api/conversations/${id}`);
    const { message, status, tool_calls: calls } = messages.at(-1)!;
    expect(status).toBe("complete");
    return { message, calls: calls.map((made) => made.tool_call_details.arguments) };
  });
  const rows = (await metric(server, "fermata_prefilled_tokens_total")) - before;
  expect(await server.stop("SIGTERM")).toBe(0);
  return { said, rows };
}

test.each([
  ["greedy", { temperature: 0 }],
  ["drawn by a seed", { temperature: 1.1, top_p: 1, seed: 3 }],
  ["drawn with penalties", { temperature: 1.1, top_p: 1, seed: 4, frequency_penalty: 0.4 }],
])("%s", async (_name, sampling) => {
  const expected = await answer("whole", sampling, false);
  const actual = await answer("restarted", sampling, true);
  expect(actual.said).toEqual(expected.said);
  expect(actual.rows).toBeLessThanOrEqual(expected.rows + 2);
});
