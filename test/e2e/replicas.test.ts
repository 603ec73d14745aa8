// Three servers behind a real HAProxy and a real nginx, configured as packaging/ has them.
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import {
  findProxy,
  freePort,
  type ProxyKind,
  startProxy,
} from "../../scripts/bench/replicas/proxies.mjs";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { postgresServer } from "../support/postgres-server.ts";

const names = ["r1", "r2", "r3"] as const;
type Name = (typeof names)[number];

let folder: string;
/** Of all replicas, where there is a Postgres; else each has a file. */
let database: string | undefined;
let ports: number[];
const replicas = new Map<Name, ServedCommand>();
const proxies = new Map<ProxyKind, Awaited<ReturnType<typeof startProxy>>>();

async function start(name: Name): Promise<void> {
  const server = await serveCommand(
    `--port=${ports[names.indexOf(name)]}`,
    `--replica=${name}`,
    `--store=${database ?? `${join(folder, name)}.sqlite`}`,
    "--process-timeout=notice=1,drain=60",
  );
  replicas.set(name, server);
}

const kinds = (["haproxy", "nginx"] as const).filter((kind) => findProxy(kind) !== null);

describe.runIf(kinds.length > 0)("replicas", () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "fermata-replicas-"));
    database = await (await postgresServer())?.emptyDatabase();
    ports = await Promise.all(names.map(freePort));
    await Promise.all(names.map(start));
    for (const kind of kinds) proxies.set(kind, await startProxy(kind, ports));
  });
  afterAll(async () => {
    await Promise.all([...proxies.values()].map((proxy) => proxy.stop()));
    await Promise.all([...replicas.values()].map((server) => server.stop("SIGKILL")));
    await rm(folder, { recursive: true });
  });

  describe.each(kinds)("behind %s", (kind) => {
    let openai: OpenAI;
    beforeAll(() => {
      openai = clientOf(kind);
    });

    test("conversations of a chat client stay where their tokens are", async () => {
      const system = `You are a clerk. ${"Answer in a few words. ".repeat(20)}`;
      const served = await Promise.all(
        Array.from({ length: 8 }, async (_, agent) => {
          const messages: OpenAI.ChatCompletionMessageParam[] = [
            { role: "system", content: system },
            { role: "user", content: `${kind}: ${`clerk ${agent} asks. `.repeat(10)}` },
          ];
          const by: (string | null)[] = [];
          let known = 0;
          for (let turn = 0; turn < 3; turn++) {
            const { data, response } = await openai.chat.completions
              .create({ model: "default", messages, max_tokens: 8 })
              .withResponse();
            by.push(replicaOf(response));
            const { prompt_tokens_details, prompt_tokens } = data.usage!;
            expect(prompt_tokens_details!.cached_tokens).toBeGreaterThanOrEqual(known);
            // But for its last token.
            known = prompt_tokens - 1;
            messages.push(data.choices[0]!.message, { role: "user", content: `Go on, ${turn}.` });
          }
          expect(new Set(by).size).toBe(1);
          return by[0];
        }),
      );
      // Eight conversations are not all of one replica.
      expect(new Set(served).size).toBeGreaterThan(1);
    });

    test("a prompt_cache_key keeps requests together that begin differently", async () => {
      const ask = async (request: number): Promise<string | null> => {
        const { response } = await openai.chat.completions
          .create({ ...question(`Question ${request}`), prompt_cache_key: `${kind}-together` })
          .withResponse();
        return replicaOf(response);
      };
      const first = await ask(0);
      const others = await Promise.all([1, 2, 3, 4, 5].map(ask));
      expect(new Set(others)).toEqual(new Set([first]));
    });

    test("what a replica has made goes to that replica by its id", async () => {
      await Promise.all(
        names.map(async (name) => {
          const input = `Say ${name}.`;
          const there = goTo(name);
          const first = await openai.responses.create({ ...short, input }, there);
          expect(first.id).toContain(`resp_${name}.`);
          const next = { ...short, input: "Again.", previous_response_id: first.id };
          const second = await openai.responses.create(next);
          expect(second.id).toContain(`resp_${name}.`);
          const read = await openai.responses.retrieve(second.id).withResponse();
          expect(read.data.id).toBe(second.id);
          expect(replicaOf(read.response)).toBe(name);
          const { id: conversation } = await openai.conversations.create({}, there);
          const third = await openai.responses.create({ ...short, input, conversation });
          expect(third.id).toContain(`resp_${name}.`);
          const items = await openai.conversations.items.list(conversation).withResponse();
          expect(items.data.data).toHaveLength(2);
          expect(replicaOf(items.response)).toBe(name);
          const kept = { ...question(input), store: true };
          const chat = await openai.chat.completions.create(kept, there);
          const again = await openai.chat.completions.retrieve(chat.id).withResponse();
          expect(again.data.id).toBe(chat.id);
          expect(replicaOf(again.response)).toBe(name);
          await openai.responses.delete(second.id);
          await expect(openai.responses.retrieve(second.id)).rejects.toThrow(/404/);
        }),
      );
    });

    test("a page's own WebSocket is let in", async () => {
      const { url } = proxies.get(kind)!;
      const socket = new WebSocket(`${url.replace("http", "ws")}/v1/responses`, { origin: url });
      await once(socket, "open");
      socket.terminate();
    });

    test.runIf(kind === "haproxy")("the page keeps to one replica by a cookie", async () => {
      const browser = { "sec-fetch-site": "same-origin" };
      const page = await fetch(`${proxies.get(kind)!.url}/`, { headers: browser });
      const cookie = page.headers.get("set-cookie")!.split(";", 1)[0]!;
      const made = await fetch(`${proxies.get(kind)!.url}/api/conversations`, {
        method: "POST",
        headers: { ...browser, cookie, "content-type": "application/json" },
        body: "{}",
      });
      const { id } = (await made.json()) as { id: string };
      expect(cookie).toBe(`fermata_replica=${replicaOf(made)}`);
      for (let request = 0; request < 3; request++) {
        const listed = await fetch(`${proxies.get(kind)!.url}/api/conversations`, {
          headers: { ...browser, cookie },
        });
        expect(await listed.text()).toContain(id);
      }
    });
  });

  test("SIGTERM: answers end, and everybody else is served all the while", async () => {
    const server = replicas.get("r1")!;
    const streams = await Promise.all(kinds.map((kind) => openStream(kind, "r1", 300)));
    let exit: number | null | undefined;
    void server.stop("SIGTERM").then((code) => (exit = code));
    await eventually(async () => {
      const ready = await fetch(`${server.url}/ready`);
      expect([ready.status, await ready.json()]).toMatchObject([503, { status: "closing" }]);
    });
    // Through the notice and the drain, until it is gone.
    await Promise.all(
      kinds.map(async (kind) => {
        for (let request = 0; exit === undefined; request++)
          await ask(kind, `Question ${request} while one leaves`);
        expect(await ask(kind, "Question when it has left", "r1")).not.toBe("r1");
      }),
    );
    expect(exit).toBe(0);
    for (const { ended } of streams) expect(await ended).toBe("length");
  });

  test("SIGKILL: answers break off, nothing else fails, and it is used again when it is back", async () => {
    const [first] = kinds.map(clientOf);
    const kept = await first!.responses.create({ ...short, input: "Hello." }, goTo("r2"));
    const streams = await Promise.all(kinds.map((kind) => openStream(kind, "r2", 8000)));
    await replicas.get("r2")!.stop("SIGKILL");
    for (const { ended } of streams) await expect(ended).rejects.toThrow();
    for (const kind of kinds)
      for (const to of ["r2", undefined] as const)
        for (const request of [1, 2])
          expect(await ask(kind, `Question ${request} of those who are left`, to)).toBe("r3");
    const next = { ...short, input: "Again.", previous_response_id: kept.id };
    // What it kept is gone with it, unless all share a database.
    const continued = first!.responses.create(next);
    if (database === undefined) await expect(continued).rejects.toThrow(/400/);
    else expect((await continued).id).toContain("resp_r3.");
    await start("r2");
    for (const kind of kinds)
      await eventually(async () => expect(await ask(kind, "Are you back?", "r2")).toBe("r2"));
  });
});

function clientOf(kind: ProxyKind): OpenAI {
  return new OpenAI({ baseURL: `${proxies.get(kind)!.url}/v1`, apiKey: "none", maxRetries: 0 });
}

function replicaOf({ headers }: Response): string | null {
  return headers.get("x-fermata-replica");
}

function goTo(name: Name | undefined): { headers: Record<string, string> } {
  return { headers: name === undefined ? {} : { "x-fermata-replica": name } };
}

/** The name of the replica that answered. */
async function ask(kind: ProxyKind, text: string, to?: Name): Promise<string | null> {
  const sent = clientOf(kind).chat.completions.create(question(text), goTo(to));
  return replicaOf((await sent.withResponse()).response);
}

/** Resolves when an answer of that many tokens has begun; `ended` gives its finish reason. */
async function openStream(kind: ProxyKind, name: Name, max_tokens: number) {
  const stream = await clientOf(kind).chat.completions.create(
    { ...(await endless(replicas.get(name)!.url)), max_tokens, stream: true },
    goTo(name),
  );
  let chunks = 0;
  const ended = (async () => {
    let reason: string | null = null;
    for await (const { choices } of stream) {
      chunks += 1;
      reason = choices[0]?.finish_reason ?? reason;
    }
    return reason;
  })();
  ended.catch(() => {});
  await eventually(() => expect(chunks).toBeGreaterThan(3));
  return { ended };
}

const short = { model: "default", max_output_tokens: 8 };

function question(content: string): OpenAI.ChatCompletionCreateParamsNonStreaming {
  return { model: "default", messages: [{ role: "user", content }], max_tokens: 2 };
}

/** An answer that the model does not end by itself. */
async function endless(url: string): Promise<OpenAI.ChatCompletionCreateParamsNonStreaming> {
  const reply = await fetch(`${url}/tokenize`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ content: "<|im_end|><|endoftext|>" }),
  });
  const { tokens } = (await reply.json()) as { tokens: number[] };
  const logit_bias = Object.fromEntries(tokens.map((token) => [token, -100]));
  return { ...question("Tell me a long story."), temperature: 2, logit_bias };
}
