// The server is killed while runs go on: what their viewers saw is there afterwards, each run is told as
// failed, and a viewer that reads on loses nothing and sees nothing twice. Needs `npm run build`.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { applyEvent, emptyState } from "../../src/client/conversation-state.ts";
import { readConversation, type ReadEvent } from "../../src/client/read-conversation.ts";
import type { Conversation, RunStarted } from "../../src/client/types.ts";

const kills = Number(process.env["FERMATA_KILLS"] ?? 4);
const child = fileURLToPath(new URL("store-kill-child.mjs", import.meta.url));

async function start(path: string): Promise<{ server: ChildProcess; url: string }> {
  const server = spawn(process.execPath, [child, path], { stdio: ["ignore", "pipe", "inherit"] });
  const [port] = (await once(server.stdout!, "data")) as [Buffer];
  return { server, url: `http://127.0.0.1:${String(port).trim()}` };
}

async function post<Body>(url: string, body: object): Promise<Body> {
  const headers = { "content-type": "application/json" };
  const reply = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  expect(reply.ok).toBe(true);
  return (await reply.json()) as Body;
}

test(`${kills} kills`, { timeout: 60_000 + kills * 3000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "fermata-run-kill-"));
  const path = join(folder, "store.sqlite");
  let interrupted = 0;
  try {
    for (let kill = 0; kill < kills; kill++) {
      const { server, url } = await start(path);
      const { id } = await post<Conversation>(`${url}/api/conversations`, {});
      const runs = await Promise.all(
        Array.from({ length: 4 }, (_, index) =>
          post<RunStarted>(`${url}/api/conversations/${id}/runs`, {
            // Half of them go on until they are killed.
            message: index % 2 === 0 ? `${index}` : `endless ${index}`,
            parent_id: null,
          }),
        ),
      );
      const seen: ReadEvent[][] = runs.map(() => []);
      const gone = new AbortController();
      const viewers = runs.map(async (run, index) => {
        const events = readConversation(`${url}${run.stream_url}&details=1`, {
          signal: gone.signal,
        });
        for await (const event of events) seen[index]!.push(event);
      });
      await setTimeout((kill % 5) * 12);
      server.kill("SIGKILL");
      await once(server, "exit");
      await setTimeout(20);
      gone.abort();
      await Promise.allSettled(viewers);

      const next = await start(path);
      for (const [index, run] of runs.entries()) {
        const before = seen[index]!;
        const lastEventId = before.at(-1)?.id;
        const stream = `${next.url}${run.stream_url}&details=1`;
        const after: ReadEvent[] = [];
        for await (const event of readConversation(stream, lastEventId ? { lastEventId } : {}))
          after.push(event);
        const events = [...before, ...after];
        expect(events.map((event) => Number(event.id))).toEqual(events.map((_, at) => at + 1));
        const state = events.map(({ event }) => event).reduce(applyEvent, emptyState);
        const reply = await fetch(`${next.url}/api/conversations/${id}`);
        const { messages } = (await reply.json()) as Conversation;
        const message = messages.find((it) => it.id === run.message_id)!;
        expect(message).toMatchObject({ message: state.message, status: state.end!.status });
        expect(["failed", "complete"]).toContain(message.status);
        if (message.status === "complete") continue;
        interrupted += 1;
        expect(message.error).toMatchObject({ code: "engine_crashed" });
        const last = events.at(-1)!.id;
        const again = await fetch(stream, { headers: { "last-event-id": last } });
        expect(again.status).toBe(204);
      }
      next.server.kill("SIGKILL");
      await once(next.server, "exit");
    }
    console.log(`${kills} kills, ${interrupted} runs were interrupted, each told as failed`);
    expect(interrupted).toBeGreaterThanOrEqual(2 * kills);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
