// Several keys on one server: what each may do, and that no key finds the prompts of another in the cache.
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { serveCommand, type ServedCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";

const folder = mkdtempSync(join(tmpdir(), "fermata-tenants-"));
const file = join(folder, "keys.json");
let server: ServedCommand;
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => server.stop());
beforeAll(() => {
  process.env["TENANTS_TEST_KEY"] = "key-of-anna";
  return () => delete process.env["TENANTS_TEST_KEY"];
});

const anna = { key: "${TENANTS_TEST_KEY}", scopes: ["infer"] };
const bert = { key: "key-of-bert", expires: "2999-01-01" };
const write = (keys: object): void => writeFileSync(file, JSON.stringify(keys));

async function serve(...args: string[]): Promise<void> {
  write({ anna, bert });
  server = await serveCommand("--store=none", `--api-keys-file=${file}`, ...args);
}

const call = (key: string, path: string, body?: object): Promise<Response> =>
  fetch(server.url + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

const text = "The harbour master writes down each ship that comes in, and what it carries. ".repeat(
  6,
);

const figure = (body: unknown, path: string): number =>
  path
    .split(".")
    .reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], body) as number;

/** Tokens of the prompt that were found in the cache, by wire. */
const wires: Record<string, (key: string, more: object) => Promise<number>> = {
  async completions(key, more) {
    const reply = await call(key, "/v1/completions", { prompt: text, max_tokens: 1, ...more });
    return figure(await reply.json(), "usage.prompt_tokens_details.cached_tokens");
  },
  async chat(key, more) {
    const messages = [{ role: "user", content: text }];
    const reply = await call(key, "/v1/chat/completions", { messages, max_tokens: 1, ...more });
    return figure(await reply.json(), "usage.prompt_tokens_details.cached_tokens");
  },
  async responses(key, more) {
    const reply = await call(key, "/v1/responses", {
      input: `R ${text}`,
      max_output_tokens: 1,
      ...more,
    });
    return figure(await reply.json(), "usage.input_tokens_details.cached_tokens");
  },
  async native(key, more) {
    const reply = await call(key, "/completion", { prompt: `N ${text}`, n_predict: 1, ...more });
    return figure(await reply.json(), "timings.cache_n");
  },
};

test("a key finds its own prompts in the cache, and no others", async () => {
  await serve();
  for (const [wire, cached] of Object.entries(wires)) {
    const none = await cached("key-of-anna", {});
    const own = await cached("key-of-anna", {});
    expect(own, wire).toBeGreaterThan(none + 40);
    expect(await cached("key-of-bert", {}), wire).toBe(none);
    expect(await cached("key-of-bert", {}), wire).toBe(own);
    const salted = { cache_salt: "of a customer" };
    expect(await cached("key-of-anna", salted), wire).toBe(none);
    expect(await cached("key-of-anna", salted), wire).toBe(own);
    expect(await cached("key-of-bert", salted), wire).toBe(none);
  }
});

test("--share-cache: all keys share, salts do not", async () => {
  await serve("--share-cache");
  const cached = wires["completions"]!;
  expect(await cached("key-of-anna", {})).toBe(0);
  expect(await cached("key-of-bert", {})).toBeGreaterThan(40);
  expect(await cached("key-of-bert", { cache_salt: "a" })).toBe(0);
  expect(await cached("key-of-anna", { cache_salt: "a" })).toBeGreaterThan(40);
});

test("scopes, and a file that changes while the server runs", async () => {
  await serve();
  const status = async (key: string, path: string) => (await call(key, path)).status;
  expect(await status("key-of-anna", "/v1/models")).toBe(200);
  expect(await status("key-of-anna", "/metrics")).toBe(403);
  expect(await status("key-of-anna", "/api/engine")).toBe(403);
  expect(await status("key-of-bert", "/metrics")).toBe(200);
  expect(await status("key-of-carl", "/v1/models")).toBe(401);
  const before = await wires["completions"]!("key-of-anna", {});
  write({ anna: { key: "new-key-of-anna" }, bert: { ...bert, expires: "2001-01-01" } });
  await eventually(async () => expect(await status("new-key-of-anna", "/metrics")).toBe(200));
  expect(await status("key-of-anna", "/v1/models")).toBe(401);
  expect(await status("key-of-bert", "/v1/models")).toBe(401);
  // A name stays the same owner.
  expect(await wires["completions"]!("new-key-of-anna", {})).toBeGreaterThan(before + 40);
  writeFileSync(file, "{");
  server.process.kill("SIGHUP");
  await eventually(() => expect(server.log()).toContain("API keys not read again"));
  expect(await status("new-key-of-anna", "/v1/models")).toBe(200);
});

/** Resolves with the status once the answer is there whole. @param localAddress where the request comes from */
async function completeFrom(localAddress: string, body: object): Promise<number> {
  const headers = { "content-type": "application/json" };
  const url = `${server.url}/v1/completions`;
  const sent = httpRequest(url, { method: "POST", localAddress, headers, agent: false });
  sent.end(JSON.stringify(body));
  const [reply] = (await once(sent, "response")) as [IncomingMessage];
  reply.resume();
  await once(reply, "end");
  return reply.statusCode ?? 0;
}

test.each<[string, { serve(): Promise<void>; busy: string; other: string }, typeof completeFrom]>([
  [
    "keys",
    { serve: () => serve("--parallel=1"), busy: "key-of-anna", other: "key-of-bert" },
    async (key, body) => {
      const reply = await call(key, "/v1/completions", body);
      await reply.arrayBuffer();
      return reply.status;
    },
  ],
  [
    "addresses, where the server has no keys,",
    {
      serve: async () => void (server = await serveCommand("--store=none", "--parallel=1")),
      busy: "127.0.0.1",
      other: "127.0.0.2",
    },
    completeFrom,
  ],
])(
  "%s take turns: many requests of one do not keep another's one waiting",
  async (_title, { serve: begin, busy, other }, complete) => {
    await begin();
    const short = { prompt: "Once", max_tokens: 12, ignore_eos: true };
    const ends: string[] = [];
    const ask = async (client: string): Promise<void> => {
      expect(await complete(client, short)).toBe(200);
      ends.push(client);
    };
    // The first one holds the only place until all others are there.
    const first = complete(busy, { ...short, max_tokens: 2000 });
    const many = Array.from({ length: 40 }, () => ask(busy));
    const waiting = async (): Promise<unknown> =>
      ((await (await fetch(`${server.url}/ready`)).json()) as { waiting: number }).waiting;
    await expect.poll(waiting, { timeout: 60_000, interval: 20 }).toBe(40);
    const one = ask(other);
    await Promise.all([first, ...many, one]);
    expect(ends.indexOf(other)).toBeLessThan(12);
  },
);
