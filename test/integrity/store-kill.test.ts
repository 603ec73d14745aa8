// The server is killed at random moments while clients store responses: what they were told is there
// afterwards, and the file is whole. Needs `npm run build`. FERMATA_KILLS=200 is the long form.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { storeKinds } from "../support/store-worlds.ts";
import { killsOf, killStore } from "./support/kill-stores.ts";
import { jsonRequest, kill, post, startServer } from "./support/killed-server.ts";

const clients = 6;

type Json = Record<string, unknown>;

/** What a client knows of a response: that it exists, and how it ended if it was told. */
type Acknowledged = Map<string, Json | null>;

/** Events of background responses that a client was told. */
const told = new Map<string, Json[]>();

test.each(storeKinds)("%s", { timeout: 1_800_000 }, async (kind) => {
  const kills = killsOf(kind, 8);
  const folder = mkdtempSync(join(tmpdir(), "fermata-kill-"));
  const { address, check: checkStore } = await killStore(kind, folder);
  const acknowledged: Acknowledged = new Map();
  const conversations: string[] = [];
  let interrupted = 0;
  told.clear();
  try {
    for (let round = 0; round <= kills; round++) {
      const { server, url } = await startServer(address);
      interrupted += await check(url, acknowledged, conversations);
      const stop = new AbortController();
      const work = Array.from({ length: clients }, (_, client) =>
        useServer(url, client, { acknowledged, conversations, signal: stop.signal }),
      );
      // On a busy machine the first answer takes its time; from then on any moment will do.
      const known = acknowledged.size;
      while (acknowledged.size === known) await setTimeout(5);
      // This one is in the middle of its work whenever the kill comes, and its client has to ask again.
      const withEndless = new Map<string, Json | null>();
      const endless = { acknowledged: withEndless, conversations, signal: stop.signal };
      work.push(untilGone(readStream(url, { input: "endless" }, endless)));
      while (withEndless.size === 0) await setTimeout(5);
      for (const id of withEndless.keys()) acknowledged.set(id, null);
      await setTimeout(Math.random() * 250);
      await kill(server);
      stop.abort();
      await Promise.all(work);
      checkStore();
      // Those that were checked are not checked again in each of many rounds.
      if (acknowledged.size > 400)
        for (const id of [...acknowledged.keys()].slice(0, -200)) acknowledged.delete(id);
    }
    console.log(
      `${kind}: ${kills} kills, ${interrupted} responses were interrupted, each told as failed`,
    );
    expect(interrupted).toBeGreaterThanOrEqual(kills);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

const interruptedChecked = new Set<string>();

/** @returns how many were interrupted since the last time */
async function check(
  url: string,
  acknowledged: Acknowledged,
  conversations: readonly string[],
): Promise<number> {
  let interrupted = 0;
  for (const [id, final] of acknowledged) {
    if (final !== null) {
      expect(await stands(url, id)).toEqual(final);
      continue;
    }
    // It may have ended, and the kill came before its client was told; or it goes on, in the background.
    const stored = await eventually(async () => {
      const now = await stands(url, id);
      expect(["failed", "completed"]).toContain(now["status"]);
      return now;
    });
    if (stored["status"] === "failed") {
      expect(stored["error"]).toMatchObject({ code: "server_error" });
      if (!interruptedChecked.has(id)) interrupted++;
      interruptedChecked.add(id);
    }
  }
  for (const [id, events] of told) {
    told.delete(id);
    const reply = await fetch(`${url}/v1/responses/${id}?stream=true`);
    const replayed = eventsOf(await reply.text());
    expect(replayed.slice(0, events.length), id).toEqual(events);
    expect(replayed.map((event) => event["sequence_number"])).toEqual([...replayed.keys()]);
    expect(replayed.at(-1)!["type"]).toMatch(/^response\.(completed|failed)$/);
  }
  for (const id of conversations.slice(-20))
    expect((await fetch(`${url}/v1/conversations/${id}`)).status, id).toBe(200);
  return interrupted;
}

async function stands(url: string, id: string): Promise<Json> {
  const reply = await fetch(`${url}/v1/responses/${id}`);
  expect(reply.status, id).toBe(200);
  return (await reply.json()) as Json;
}

interface Use {
  acknowledged: Acknowledged;
  conversations: string[];
  signal: AbortSignal;
}

/** One request after the other, of every kind, until the server is gone. */
function useServer(url: string, client: number, use: Use): Promise<void> {
  return untilGone(requests(url, client, use));
}

/** The server is gone: what fetch throws then is a TypeError, or the test's own abort. */
async function untilGone(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof TypeError) && !(error instanceof DOMException)) throw error;
  }
}

async function requests(url: string, client: number, use: Use): Promise<void> {
  const { acknowledged, conversations, signal } = use;
  let previous: string | undefined;
  for (let turn = 0; !signal.aborted; turn++) {
    const kind = (turn + client) % 5;
    const body = { input: `turn ${turn} of ${client}`, previous_response_id: previous };
    if (kind === 0) {
      const response = await post(`${url}/v1/responses`, body, signal);
      acknowledged.set(String(response["id"]), response);
      previous = String(response["id"]);
    } else if (kind === 1) {
      const background = { ...body, background: true };
      const { id } = await post(`${url}/v1/responses`, background, signal);
      acknowledged.set(String(id), null);
    } else if (kind === 2) {
      await readStream(url, body, use);
    } else if (kind === 3) {
      await readStream(url, { ...body, background: true }, use);
    } else {
      const { id } = await post(`${url}/v1/conversations`, { items: [] }, signal);
      conversations.push(String(id));
      const turnOf = { input: "Hi", conversation: id };
      const response = await post(`${url}/v1/responses`, turnOf, signal);
      acknowledged.set(String(response["id"]), response);
    }
  }
}

async function readStream(url: string, body: Json, { acknowledged, signal }: Use): Promise<void> {
  const reply = await fetch(`${url}/v1/responses`, jsonRequest({ ...body, stream: true }, signal));
  const events: Json[] = [];
  let text = "";
  for await (const chunk of reply.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const end = text.lastIndexOf("\n\n");
    const whole = eventsOf(text.slice(0, Math.max(end, 0)));
    text = text.slice(end + 2);
    for (const event of whole) {
      events.push(event);
      const { type, response } = event as { type: string; response?: Json };
      if (response === undefined) continue;
      const id = String(response["id"]);
      acknowledged.set(id, type === "response.completed" ? response : null);
      if (body["background"] === true) told.set(id, events);
    }
  }
}

function eventsOf(text: string): Json[] {
  return text.split("\n\n").flatMap((block) => {
    const data = block.split("\n").find((line) => line.startsWith("data: {"));
    return data === undefined ? [] : [JSON.parse(data.slice("data: ".length)) as Json];
  });
}
