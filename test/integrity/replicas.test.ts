// Servers that share a database: streams of one are followed and cancelled at another, which also takes what clients send
// for its runs, and when one is killed, another goes on with them. Needs `npm run build`, and Postgres. FERMATA_KILLS=50 is
// the long form, which also runs behind HAProxy and nginx, where they are installed.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { applyEvent, emptyState } from "../../src/client/conversation-state.ts";
import { readConversation, type ReadEvent } from "../../src/client/read-conversation.ts";
import type { Conversation, RunStarted } from "../../src/client/types.ts";
import { SseParser } from "../../src/client/sse-parser.ts";
import { findProxy, freePort, startProxy } from "../../scripts/bench/replicas/proxies.mjs";
import { eventually } from "../support/eventually.ts";
import { postgresServer } from "../support/postgres-server.ts";
import {
  jsonRequest,
  kill,
  type KilledServer,
  post,
  startServer,
} from "./support/killed-server.ts";

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

interface Question {
  call_id: string;
  asking_id: string;
  may_have_run?: boolean;
}

/** A client whose connection was lost, since the server behind the proxy was killed, asks again. */
async function untilAnswered<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      await setTimeout(20);
    }
  }
}

/** As any of the servers tells them. */
async function questions(url: string): Promise<Question[]> {
  const reply = await fetch(`${url}/api/approvals`);
  return reply.ok ? ((await reply.json()) as { approvals: Question[] }).approvals : [];
}

const approve = (url: string, callId: string, askingId?: string): Promise<Response> =>
  fetch(
    `${url}/api/approvals/${callId}`,
    jsonRequest({ decision: "approve", asking_id: askingId }),
  );

/** A run that asks for consent to its call `save_<name>`. */
async function startRun(url: string, name: string): Promise<{ id: string; run: RunStarted }> {
  const { id } = await post<Conversation>(`${url}/api/conversations`, {});
  const run = await post<RunStarted>(`${url}/api/conversations/${id}/runs`, { message: name });
  return { id, run };
}

async function messageOf(url: string, id: string, run: RunStarted) {
  const { messages } = (await (
    await fetch(`${url}/api/conversations/${id}`)
  ).json()) as Conversation;
  return messages.find((it) => it.id === run.message_id)!;
}

interface Held {
  id: string;
  status: string;
  output: { type: string; call_id: string; status: string; content?: { text: string }[] }[];
}

/** A response that waits for what its client's function returns. */
const hold = (url: string, name: string): Promise<Held> =>
  post<Held>(`${url}/v1/responses`, {
    input: `held ${name}`,
    background: true,
    tools: [{ type: "function", name: "ask_client", parameters: { type: "object" } }],
    fermata: { tools: "held" },
  });

const read = async (url: string, id: string): Promise<Held> =>
  (await (await fetch(`${url}/v1/responses/${id}`)).json()) as Held;

const isOpen = ({ status }: Held): boolean => status === "queued" || status === "in_progress";

const deliver = (url: string, id: string, callId: string, output: string): Promise<Response> =>
  fetch(
    `${url}/v1/responses/${id}/tool_outputs`,
    jsonRequest({ tool_call_id: callId, output: [{ type: "output_text", text: output }] }),
  );

const saidBy = ({ output }: Held): string | undefined =>
  output.find(({ type }) => type === "message")?.content?.[0]?.text;

const ended = (url: string, id: string): Promise<Held> =>
  eventually(async () => {
    const response = await read(url, id);
    expect(isOpen(response)).toBe(false);
    return response;
  });

test.skipIf(server === null)("any server takes what clients send for runs", async () => {
  const address = await server!.emptyDatabase();
  const folder = mkdtempSync(join(tmpdir(), "fermata-replicas-"));
  const counted = join(folder, "calls");
  const here = await startServer(address, counted);
  const there = await startServer(address, counted);
  const asked = (name: string): Promise<unknown> =>
    eventually(async () =>
      expect(await questions(there.url)).toMatchObject([{ call_id: `save_${name}` }]),
    );
  try {
    const one = await startRun(here.url, "one");
    await asked("one");
    expect((await approve(there.url, "save_other")).status).toBe(404);
    // Refused by the server that asks, as is a decision on an earlier question.
    expect((await approve(there.url, "save_one", "asking_other")).status).toBe(409);
    const [{ asking_id: askingId }] = (await questions(there.url)) as [Question];
    expect((await approve(there.url, "save_one", askingId)).status).toBe(200);
    await eventually(async () => expect(await questions(there.url)).toEqual([]));
    expect((await approve(there.url, "save_one")).status).toBe(409);
    await eventually(async () =>
      expect(await messageOf(there.url, one.id, one.run)).toMatchObject({
        status: "complete",
        message: expect.stringContaining("save of one: done"),
      }),
    );

    const { id } = await hold(here.url, "two");
    // Until the call is written, nobody knows it.
    await eventually(async () =>
      expect((await deliver(there.url, id, "ask_client_held two", "seen")).status).toBe(200),
    );
    const answered = await ended(there.url, id);
    expect([answered.status, saidBy(answered)]).toEqual(["completed", "seen"]);
    expect((await deliver(there.url, id, "ask_client_held two", "again")).status).toBe(404);

    const third = await hold(here.url, "three");
    const wrong = async (): Promise<Record<string, unknown>> =>
      (await (await deliver(there.url, third.id, "call_9", "what?")).json()) as Record<
        string,
        unknown
      >;
    // Refused by the server that has it, in its words.
    expect(await wrong()).toMatchObject({ error: { code: "not_found", param: "tool_call_id" } });
    const input = [
      { type: "function_call_output", call_id: "ask_client_held three", output: "by request" },
    ];
    await eventually(async () =>
      expect((await read(here.url, third.id)).output).toMatchObject([{ type: "function_call" }]),
    );
    const resumed = { previous_response_id: third.id, input };
    expect(await post(`${there.url}/v1/responses`, resumed)).toEqual({
      id: third.id,
      status: "in_progress",
    });
    expect(saidBy(await ended(there.url, third.id))).toBe("by request");

    // Nobody has asked again yet.
    const last = await startRun(here.url, "last");
    await asked("last");
    await kill(here.server);
    expect((await approve(there.url, "save_last")).status).toBe(200);
    await eventually(async () =>
      expect((await messageOf(there.url, last.id, last.run)).status).toBe("complete"),
    );
    expect(countsOf(counted).get("save last")).toBe(1);
  } finally {
    for (const one of [here, there]) one.server.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});

/** How often tools were called, by their own lines. */
function countsOf(path: string): Map<string, number> {
  const times = new Map<string, number>();
  for (const line of readFileSync(path, "utf8").trim().split("\n"))
    times.set(line, (times.get(line) ?? 0) + 1);
  return times;
}

const proxies = (["haproxy", "nginx"] as const).filter(
  (kind) => process.env["FERMATA_KILLS"] !== undefined && findProxy(kind) !== null,
);

test.skipIf(server === null).each(["no proxy", ...proxies] as const)(
  `one of three is killed, ${kills} times: %s`,
  { timeout: 120_000 + kills * 60_000 },
  async (way) => {
    const address = await server!.emptyDatabase();
    const folder = mkdtempSync(join(tmpdir(), "fermata-replicas-"));
    const counted = join(folder, "calls");
    let state = 7;
    const random = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
    const ports = [await freePort(), await freePort(), await freePort()];
    const start = (index: number): Promise<KilledServer> =>
      startServer(address, counted, { name: `r${index + 1}`, port: ports[index]! });
    const replicas = await Promise.all([start(0), start(1), start(2)]);
    const proxy = way === "no proxy" ? null : await startProxy(way, ports);
    let gone = -1;
    /** The proxy, or any server that was not killed. */
    const any = (): string => {
      const living = replicas.filter((_, index) => index !== gone);
      return proxy?.url ?? living[Math.floor(random() * living.length)]!.url;
    };
    /** How long others took, where a run went on elsewhere. */
    const takenAfterMs: number[] = [];
    const statuses = new Map<string, number>();
    const answers = new Map<string, number>();
    const decided = new Map<string, number>();
    const repeats = new Set<string>();
    const add = (counts: Map<string, number>, key: string): unknown =>
      counts.set(key, (counts.get(key) ?? 0) + 1);
    try {
      for (let round = 0; round < kills; round++) {
        const names = Array.from({ length: 4 }, (_, index) => `${round}-${index}`);
        const begun = await Promise.all(names.map((name) => startRun(any(), name)));
        const { id: held } = await hold(any(), `${round}`);
        const viewers = begun.map(({ run }) => watch(run, any));
        const reader = watchResponse(held, any);
        const waited = 1 + (round % names.length);
        await eventually(async () =>
          expect((await questions(any())).length).toBeGreaterThanOrEqual(waited),
        );
        await setTimeout(random() * 100);
        const victim = Math.floor(random() * 3);
        const killedAt = performance.now();
        const killing = kill(replicas[victim]!.server);
        gone = victim;
        await killing;
        const hasEnded = Promise.all([...viewers, reader]);
        let isOver = false;
        void hasEnded.finally(() => (isOver = true)).catch(() => {});
        // People decide at any server, and so do clients with their outputs.
        while (!isOver) {
          const asked = await untilAnswered(() => questions(any()));
          for (const { call_id: id, asking_id: askingId, may_have_run: mayHaveRun } of asked) {
            const name = id.slice("save_".length);
            if (mayHaveRun === true) repeats.add(name);
            let isSure = true;
            const { ok } = await untilAnswered(() => {
              // It may have been taken, too, where no answer comes.
              if (!isSure) add(decided, name);
              isSure = false;
              return approve(any(), id, askingId);
            });
            if (ok) add(decided, name);
          }
          const output = [`ask_client_held ${round}`, `seen ${round}`] as const;
          await untilAnswered(() => deliver(any(), held, ...output));
          await setTimeout(20);
        }
        takenAfterMs.push(performance.now() - killedAt);
        for (const [index, viewer] of viewers.entries()) {
          const events = await viewer;
          const { id, run } = begun[index]!;
          expect(events.map((event) => Number(event.id))).toEqual(events.map((_, at) => at + 1));
          const seen = events.map(({ event }) => event).reduce(applyEvent, emptyState);
          const message = await untilAnswered(() => messageOf(any(), id, run));
          expect(message).toMatchObject({ message: seen.message, status: seen.end!.status });
          add(statuses, message.status);
        }
        const numbers = (await reader).map((event) => event["sequence_number"]);
        expect(numbers).toEqual([...numbers.keys()]);
        const answer = await untilAnswered(() => read(any(), held));
        expect(saidBy(answer)).toBe(`seen ${round}`);
        add(answers, answer.status);
        replicas[victim] = await start(victim);
        gone = -1;
        // The proxy looks once a second.
        if (proxy !== null)
          await eventually(async () => expect((await fetch(`${any()}/ready`)).ok).toBe(true));
      }
      for (const [call, count] of countsOf(counted)) {
        const [tool, name] = call.split(" ") as [string, string];
        if (tool === "note") expect([call, count]).toEqual([call, 1]);
        if (tool !== "save") continue;
        expect(count, call).toBeLessThanOrEqual(repeats.has(name) ? decided.get(name)! : 1);
      }
      const told = (counts: Map<string, number>): string =>
        [...counts].map(([status, count]) => `${count} ${status}`).join(", ");
      console.log(
        `${way}: ${kills} kills of one of three, runs: ${told(statuses)}, ${repeats.size} asked again; ` +
          `held responses: ${told(answers)}; ` +
          `all had ended after ${Math.round(Math.max(...takenAfterMs))} ms at most`,
      );
      expect([...statuses]).toEqual([["complete", 4 * kills]]);
      expect([...answers]).toEqual([["completed", kills]]);
    } finally {
      for (const one of replicas) one.server.kill("SIGKILL");
      await proxy?.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

/** Over whichever server answers. */
async function watch(run: RunStarted, any: () => string): Promise<ReadEvent[]> {
  const events: ReadEvent[] = [];
  const options = {
    maxAttempts: 100,
    fetch: (path: string | URL | Request, init?: RequestInit) =>
      fetch(new URL(String(path).replace("http://any", any())), init),
  };
  for await (const event of readConversation(`http://any${run.stream_url}&details=1`, options))
    events.push(event);
  return events;
}

/** Every event up to the last, over as many connections as it takes. */
async function watchResponse(id: string, any: () => string): Promise<Json[]> {
  const events: Json[] = [];
  const isLast = /^response\.(completed|incomplete|failed)$/;
  for (let attempt = 0; attempt < 100; attempt++) {
    try {
      const after = events.at(-1)?.["sequence_number"] ?? -1;
      const query = after === -1 ? "" : `&starting_after=${String(after)}`;
      const reply = await fetch(`${any()}/v1/responses/${id}?stream=true${query}`);
      if (reply.ok)
        for await (const event of eventsOf(reply))
          if (event["type"] !== "error") events.push(event);
    } catch {
      // The connection broke off.
    }
    if (isLast.test(String(events.at(-1)?.["type"]))) return events;
    await setTimeout(50);
  }
  throw new RangeError(`the stream of ${id} did not end`);
}
