// The server is killed while runs and background responses are written, and the next one goes on with them: each ends as if
// nothing had been, and a viewer that reads on loses nothing and sees nothing twice. Needs `npm run build`.
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
import { eventually } from "../support/eventually.ts";
import { kill, post, startServer } from "./support/killed-server.ts";
import { wordsOf } from "./support/kill-words.mjs";

interface Told {
  type: string;
  sequence_number: number;
  delta?: string;
}

/** The events of a background response behind `after`, as far as they come. */
async function* streamed(url: string, id: string, after: number | null): AsyncGenerator<Told> {
  const from = after === null ? "" : `&starting_after=${after}`;
  const reply = await fetch(`${url}/v1/responses/${id}?stream=true${from}`);
  let text = "";
  for await (const chunk of reply.body!.pipeThrough(new TextDecoderStream())) {
    const lines = (text + chunk).split("\n");
    text = lines.pop()!;
    for (const line of lines)
      if (line.startsWith("data: {")) yield JSON.parse(line.slice(6)) as Told;
  }
}

test.each(storeKinds)("%s", { timeout: 1_800_000 }, async (kind) => {
  const kills = killsOf(kind, 3);
  const folder = mkdtempSync(join(tmpdir(), "fermata-run-kill-"));
  const { address } = await killStore(kind, folder);
  const counts = { runs: 0, runsCut: 0, responses: 0, responsesCut: 0 };
  try {
    for (let round = 0; round < kills; round++) {
      // Two of four are always cut.
      const { server, url } = await startServer(address, undefined, undefined, true);
      const { id } = await post<Conversation>(`${url}/api/conversations`, {});
      const messages = ["short", "long 1", "shorter", "long 2"];
      const runs = await Promise.all(
        messages.map((message) =>
          post<RunStarted>(`${url}/api/conversations/${id}/runs`, { message, parent_id: null }),
        ),
      );
      const responses = await Promise.all(
        messages.map(async (input) => {
          const body = { input, background: true };
          return (await post<{ id: string }>(`${url}/v1/responses`, body)).id;
        }),
      );
      const seen: ReadEvent[][] = runs.map(() => []);
      const told: Told[][] = responses.map(() => []);
      const gone = new AbortController();
      const viewers = Promise.allSettled([
        ...runs.map(async (run, index) => {
          const events = readConversation(`${url}${run.stream_url}&details=1`, {
            signal: gone.signal,
          });
          for await (const event of events) seen[index]!.push(event);
        }),
        ...responses.map(async (response, index) => {
          for await (const event of streamed(url, response, null)) told[index]!.push(event);
        }),
      ]);
      await setTimeout((round % 7) * 25);
      await kill(server);
      await setTimeout(20);
      gone.abort();
      await viewers;

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
        expect(state.message).toBe(wordsOf(messages[index]!).join(""));
        expect(state.end).toMatchObject({ status: "complete" });
        const reply = await fetch(`${next.url}/api/conversations/${id}`);
        const all = ((await reply.json()) as Conversation).messages;
        const message = all.find((it) => it.id === run.message_id)!;
        expect(message).toMatchObject({ message: state.message, status: "complete" });
        counts.runs += 1;
        const hasEnded = ({ event }: ReadEvent): boolean =>
          event.details?.some(({ type }) => type === "end") === true;
        if (!before.some(hasEnded)) counts.runsCut += 1;
      }
      for (const [index, response] of responses.entries()) {
        const before = told[index]!;
        const last = before.at(-1);
        const after: Told[] = [];
        for await (const event of streamed(next.url, response, last?.sequence_number ?? null))
          after.push(event);
        const events = [...before, ...after];
        expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, at) => at));

        const text = events.map(({ type, delta }) => (type.endsWith("text.delta") ? delta : ""));
        expect(text.join("")).toBe(wordsOf(messages[index]!).join(""));
        expect(events.at(-1)!.type).toBe("response.completed");
        await eventually(async () => {
          const reply = await fetch(`${next.url}/v1/responses/${response}`);
          expect(await reply.json()).toMatchObject({ status: "completed" });
        });
        counts.responses += 1;
        if (last?.type !== "response.completed") counts.responsesCut += 1;
      }
      await kill(next.server);
    }
    console.log(
      `${kind}: ${kills} kills: ${counts.runsCut} of ${counts.runs} runs and ${counts.responsesCut} of ${counts.responses} responses were cut, all were completed`,
    );
    expect(counts.runsCut).toBeGreaterThanOrEqual(2 * kills);
    expect(counts.responsesCut).toBeGreaterThanOrEqual(2 * kills);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
