// Servers that share a database: streams of one are followed and cancelled at another, and when one is killed, another goes
// on with its runs. Needs `npm run build`, and Postgres. FERMATA_KILLS=50 is the long form.
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { applyEvent, emptyState } from "../../src/client/conversation-state.ts";
import { readConversation, type ReadEvent } from "../../src/client/read-conversation.ts";
import type { Conversation, RunStarted } from "../../src/client/types.ts";
import { SseParser } from "../../src/client/sse-parser.ts";
import { eventually } from "../support/eventually.ts";
import { postgresServer } from "../support/postgres-server.ts";
import { jsonRequest, kill, post, startServer } from "./support/killed-server.ts";

const server = await postgresServer();
const kills = Number(process.env["FERMATA_KILLS"] ?? 2);

type Json = Record<string, unknown>;

test.skipIf(server === null)("a stream is read and cancelled at another server", async () => {
  const address = await server!.emptyDatabase();
  const [here, there] = [await startServer(address), await startServer(address)];
  try {
    const body = { input: "endless", background: true };
    const { id } = await post(`${here.url}/v1/responses`, body);
    const reply = await fetch(`${there.url}/v1/responses/${id}?stream=true`);
    const events: Json[] = [];
    for await (const event of eventsOf(reply)) {
      events.push(event);
      if (events.length !== 8) continue;
      const cancelled = await post(`${there.url}/v1/responses/${id}/cancel`, {});
      expect(cancelled["status"]).toBe("cancelled");
    }
    expect(events.map((event) => event["sequence_number"])).toEqual([...events.keys()]);
    expect(events.at(-1)).toMatchObject({
      type: "response.incomplete",
      response: { status: "cancelled" },
    });
    const stored = await (await fetch(`${here.url}/v1/responses/${id}`)).json();
    expect(stored).toMatchObject({ status: "cancelled" });
    const last = events.at(-2)!["sequence_number"];
    const rest = await fetch(
      `${here.url}/v1/responses/${id}?stream=true&starting_after=${String(last)}`,
    );
    const left: Json[] = [];
    for await (const event of eventsOf(rest)) left.push(event);
    expect(left).toEqual([events.at(-1)]);
  } finally {
    for (const one of [here, there]) await kill(one.server);
  }
});

async function* eventsOf(reply: Response): AsyncGenerator<Json> {
  const parser = new SseParser();
  for await (const chunk of reply.body!.pipeThrough(new TextDecoderStream()))
    for (const { data } of parser.push(chunk))
      if (data !== "[DONE]") yield JSON.parse(data) as Json;
}

interface Replica {
  server: ChildProcess;
  url: string;
}

test.skipIf(server === null)(
  `one of three is killed, ${kills} times`,
  { timeout: 120_000 + kills * 30_000 },
  async () => {
    const address = await server!.emptyDatabase();
    const folder = mkdtempSync(join(tmpdir(), "fermata-replicas-"));
    const counted = join(folder, "calls");
    let state = 7;
    const random = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
    const start = (): Promise<Replica> => startServer(address, counted);
    const replicas = await Promise.all([start(), start(), start()]);
    const any = (): Replica => replicas[Math.floor(random() * 3)]!;
    /** How long others took, where a run went on elsewhere. */
    const takenAfterMs: number[] = [];
    const statuses = new Map<string, number>();
    const decided = new Map<string, number>();
    const repeats = new Set<string>();
    try {
      for (let round = 0; round < kills; round++) {
        const names = Array.from({ length: 4 }, (_, index) => `${round}-${index}`);
        const begun = await Promise.all(
          names.map(async (name) => {
            const { url } = any();
            const { id } = await post<Conversation>(`${url}/api/conversations`, {});
            const run = await post<RunStarted>(`${url}/api/conversations/${id}/runs`, {
              message: name,
            });
            return { name, id, run };
          }),
        );
        const viewers = begun.map(({ run }) => watch(run, any));
        const waited = 1 + (round % names.length);
        await eventually(async () =>
          expect((await questions(replicas)).size).toBeGreaterThanOrEqual(waited),
        );
        await setTimeout(random() * 100);
        const victim = Math.floor(random() * 3);
        const killedAt = performance.now();
        await kill(replicas[victim]!.server);
        const left = replicas.filter((_, index) => index !== victim);
        const hasEnded = Promise.all(viewers);
        let isOver = false;
        void hasEnded.finally(() => (isOver = true));
        // People decide at any server; what nobody answers is asked by who goes on with it.
        while (!isOver) {
          for (const [id, { url, mayHaveRun }] of await questions(left)) {
            const name = id.slice("save_".length);
            if (mayHaveRun) repeats.add(name);
            const reply = await fetch(
              `${url}/api/approvals/${id}`,
              jsonRequest({ decision: "approve" }),
            );
            if (!reply.ok) continue;
            decided.set(name, (decided.get(name) ?? 0) + 1);
          }
          await setTimeout(20);
        }
        takenAfterMs.push(performance.now() - killedAt);
        for (const [index, events] of (await hasEnded).entries()) {
          const { id, run } = begun[index]!;
          expect(events.map((event) => Number(event.id))).toEqual(events.map((_, at) => at + 1));
          const seen = events.map(({ event }) => event).reduce(applyEvent, emptyState);
          const reply = await fetch(`${left[0]!.url}/api/conversations/${id}`);
          const { messages } = (await reply.json()) as Conversation;
          const message = messages.find((it) => it.id === run.message_id)!;
          expect(message).toMatchObject({ message: seen.message, status: seen.end!.status });
          statuses.set(message.status, (statuses.get(message.status) ?? 0) + 1);
        }
        replicas[victim] = await start();
      }
      const times = new Map<string, number>();
      for (const line of readFileSync(counted, "utf8").trim().split("\n"))
        times.set(line, (times.get(line) ?? 0) + 1);
      for (const [call, count] of times) {
        const [tool, name] = call.split(" ") as [string, string];
        if (tool === "note") expect([call, count]).toEqual([call, 1]);
        if (tool !== "save") continue;
        expect(count, call).toBeLessThanOrEqual(repeats.has(name) ? decided.get(name)! : 1);
      }
      console.log(
        `${kills} kills of one of three, ${[...statuses].map(([status, count]) => `${count} runs ${status}`).join(", ")}, ` +
          `${repeats.size} asked again; all had ended after ${Math.round(Math.max(...takenAfterMs))} ms at most`,
      );
      expect(statuses.get("complete")).toBeGreaterThan(0);
    } finally {
      for (const one of replicas) one.server.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

/** Over whichever server answers. */
async function watch(run: RunStarted, any: () => Replica): Promise<ReadEvent[]> {
  const events: ReadEvent[] = [];
  const options = {
    maxAttempts: 100,
    fetch: async (path: string | URL | Request, init?: RequestInit) => {
      const reply = await fetch(new URL(String(path).replace("http://any", any().url)), init);
      return reply;
    },
  };
  for await (const event of readConversation(`http://any${run.stream_url}&details=1`, options))
    events.push(event);
  return events;
}

/** By the ids of their calls, at any of the servers. */
async function questions(
  replicas: readonly Replica[],
): Promise<Map<string, { url: string; mayHaveRun: boolean }>> {
  const asked = new Map<string, { url: string; mayHaveRun: boolean }>();
  for (const { url } of replicas) {
    const reply = await fetch(`${url}/api/approvals`);
    const { approvals } = (await reply.json()) as {
      approvals: { call_id: string; may_have_run?: boolean }[];
    };
    for (const { call_id: id, may_have_run: mayHaveRun = false } of approvals)
      asked.set(id, { url, mayHaveRun });
  }
  return asked;
}
