// The server is killed while runs go on: what their viewers saw is there afterwards, each run is told as
// failed, and a viewer that reads on loses nothing and sees nothing twice. Needs `npm run build`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { applyEvent, emptyState } from "../../src/client/conversation-state.ts";
import { readConversation, type ReadEvent } from "../../src/client/read-conversation.ts";
import type { Conversation, RunStarted } from "../../src/client/types.ts";
import { storeKinds } from "../support/store-worlds.ts";
import { killsOf, killStore } from "./support/kill-stores.ts";
import { kill, post, startServer } from "./support/killed-server.ts";

test.each(storeKinds)("%s", { timeout: 1_800_000 }, async (kind) => {
  const kills = killsOf(kind, 4);
  const folder = mkdtempSync(join(tmpdir(), "fermata-run-kill-"));
  const { address } = await killStore(kind, folder);
  let interrupted = 0;
  try {
    for (let round = 0; round < kills; round++) {
      const { server, url } = await startServer(address);
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
      await setTimeout((round % 5) * 12);
      await kill(server);
      await setTimeout(20);
      gone.abort();
      await Promise.allSettled(viewers);

      const next = await startServer(address);
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
      await kill(next.server);
    }
    console.log(
      `${kind}: ${kills} kills, ${interrupted} runs were interrupted, each told as failed`,
    );
    expect(interrupted).toBeGreaterThanOrEqual(2 * kills);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
