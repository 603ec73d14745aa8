/** A run whose process ends at any moment: the next one goes on with it, and no viewer sees a gap or anything twice. */

import Database from "libsql";
import { beforeEach, describe, expect, test } from "vitest";
import { Chat } from "../../src/chat/chat.ts";
import type { GenerateRequest, Generation } from "../../src/engine/types.ts";
import { SqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import type { Tool } from "../../src/tools/types.ts";
import { eventually } from "../support/eventually.ts";
import { chatml } from "../unit/chat/chat-fixtures.ts";
import { FakeEngine } from "../unit/chat/fake-engine.ts";
import { createWorld, provider, type World } from "./fake-services.ts";
import { eventsOf, type Json } from "./responses-world.ts";
import { countedTool } from "./restart-world.ts";
import { ended } from "./ended-run.ts";
import { begin, copyOf, forgetProcesses, storeFolder } from "./written-world.ts";

const call = (name: string): string =>
  `<tool_call>\n{"name":"${name}","arguments":{"of":"milk"}}\n</tool_call>`;

const rounds = [
  `<think>I must look.</think>Let me see. ${call("look")}${call("save")}`,
  `Saved. Once more: ${call("save")}`,
  "All is saved.",
];

/** Says the round that the prompt has come to, in pieces of its own size. */
class PromptedEngine extends FakeEngine {
  says: readonly string[] = rounds;

  override generate(request: GenerateRequest): Generation {
    const turns = this.spell(request.prompt).split("<|im_start|>⟫assistant").length - 1;
    this.rounds.splice(0, Infinity, ...this.says.slice(turns - 1).map((text) => ({ text })));
    return super.generate(request);
  }
}

const at = storeFolder();
let ran: string[];
beforeEach(() => {
  ran = [];
});

interface Served {
  world: World;
  store: SqliteStore;
  engine: PromptedEngine;
  end(): Promise<void>;
}

async function serve(
  path: string,
  {
    chunk,
    template = "",
    vocabularySize = 500,
    watch,
    says = rounds,
  }: {
    chunk: number;
    template?: string | undefined;
    /** Of the model. */
    vocabularySize?: number;
    watch?: () => void;
    says?: readonly string[];
  },
): Promise<Served> {
  const store = new SqliteStore(path);
  const engine = new PromptedEngine({ template: `${chatml}{# <think> #}${template}`, chunk });
  engine.says = says;
  const tool = (name: string, options: Partial<Tool> = {}): Tool => countedTool(ran, name, options);
  const world = createWorld({
    realChat: new Chat(engine),
    model: { vocabularySize },
    tools: provider(tool("look", { readOnly: true }), tool("save")),
    store: watch === undefined ? store : watched(store, watch),
    branches: watch === undefined ? store.branches : watched(store.branches, watch),
  });
  await world.app.ready();
  const end = async (): Promise<void> => {
    await world.app.close();
    await store.close();
  };
  return { world, store, engine, end };
}

/** Calls `watch` after each write. */
function watched<Store extends object>(whole: Store, watch: () => void): Store {
  const writes = new Set(
    "beginRun appendEvents setRunHold setHeldCall endRun create update setHold".split(" "),
  );
  return new Proxy(whole, {
    get: (store, name: string) => {
      const method = store[name as keyof Store];
      if (name === "responses") return watched(method as object, watch);
      if (typeof method !== "function") return method;
      return async (...values: unknown[]) => {
        const result: unknown = await (method as (...all: unknown[]) => unknown).apply(
          store,
          values,
        );
        if (writes.has(name)) watch();
        return result;
      };
    },
  });
}

const shown = ({ message, state }: Awaited<ReturnType<typeof ended>>) => ({
  status: message.status,
  message: message.message,
  reasoning: state.reasoning,
  said: state.message,
  calls: state.toolCalls.map(({ tool_name: name, arguments: args, progress }) => ({
    name,
    args,
    progress,
  })),
});

/** A server whose store is copied after each write, with the calls that had run by then. */
async function serveWatched(options: { chunk: number; says?: readonly string[] }): Promise<{
  first: Served;
  moments: { path: string; ran: string[] }[];
}> {
  const path = at("store.sqlite");
  const moments: { path: string; ran: string[] }[] = [];
  const watch = (): void => {
    moments.push({ path: copyOf(path, `${moments.length}.sqlite`), ran: [...ran] });
  };
  return { first: await serve(path, { ...options, watch }), moments };
}

test(
  "whatever was written last, the next process goes on behind it",
  { timeout: 120_000 },
  async () => {
    const { first, moments } = await serveWatched({ chunk: 16 });
    const run = await begin(first.world, "Save milk.");
    const expected = shown(await ended(first.world, run));
    await first.end();
    expect(expected).toMatchObject({
      status: "complete",
      message: "Let me see.\n\nSaved. Once more:\n\nAll is saved.",
      reasoning: "I must look.",
    });
    expect(ran.toSorted()).toEqual(["look", "save", "save"]);

    for (const [index, moment] of moments.slice(0, -1).entries()) {
      forgetProcesses(moment.path);
      ran = [...moment.ran];
      const next = await serve(moment.path, { chunk: 5 });
      const end = await ended(next.world, run);
      await next.end();
      const { calls, ...rest } = shown(end);
      const { calls: all, ...whole } = expected;
      expect(rest, `after write ${index}`).toEqual(whole);
      // A call that may have run is not run again, and the model is told.
      const plain = (list: typeof all) => list.map(({ name, args }) => ({ name, args }));
      expect(plain(calls), `after write ${index}`).toEqual(plain(all));
      expect(ran.filter((name) => name === "save").length).toBeLessThanOrEqual(2);
    }
    expect(moments.length).toBeGreaterThan(20);
  },
);

const outputOf = (response: Json): Json =>
  response.output.map(({ type, status, name, arguments: args, content, error }: Json) => ({
    type,
    status,
    name,
    args,
    text: content?.[0]?.text,
    error,
  }));

async function beginResponse({ world }: Served, request: object): Promise<string> {
  const payload = { background: true, ...request };
  const reply = await world.app.inject({ method: "POST", url: "/v1/responses", payload });
  return (reply.json() as Json).id;
}

/** Once it has ended: the response, and what its deltas say. Its events are one stream. */
async function endedResponse({ world }: Served, id: string): Promise<Json> {
  const url = `/v1/responses/${id}`;
  const response = await eventually(async () => {
    const now = (await world.app.inject({ url })).json() as Json;
    expect(["queued", "in_progress"]).not.toContain(now.status);
    return now;
  });
  const events = eventsOf((await world.app.inject({ url: `${url}?stream=true` })).body);
  expect(events.map(({ sequence_number: at }) => at)).toEqual(events.map((_, index) => index));
  expect(events.at(-1)).toMatchObject({ type: `response.${response.status}` });
  const deltas = (type: string): string =>
    events.flatMap((event) => (event.type === type ? [event.delta] : [])).join("");
  const added = events.filter(({ type }) => type === "response.output_item.added");
  expect(added.map(({ output_index: at }) => at)).toEqual(added.map((_, index) => index));
  expect(response.error).toBeNull();
  expect(added.map(({ item }) => (item as Json).id)).toEqual(
    response.output.map((item: Json) => item.id),
  );
  const done = events.filter(({ type }) => type === "response.output_item.done");
  expect(new Set(done.map(({ item }) => (item as Json).id)).size).toBe(done.length);
  const kinds = ["output_text", "reasoning_text", "custom_tool_call_input"];
  return { response, texts: kinds.map((kind) => deltas(`response.${kind}.delta`)) };
}

function isAtWork(path: string): boolean {
  const database = new Database(path);
  const row = database.prepare("SELECT count(*) AS held FROM response_holds").get();
  database.close();
  return (row as { held: number }).held > 0;
}

test(
  "a background response, too, and its events are one stream",
  { timeout: 120_000 },
  async () => {
    const { first, moments } = await serveWatched({ chunk: 8 });
    const files = { type: "mcp", server_label: "files", require_approval: "never" };
    const id = await beginResponse(first, { input: "Save milk.", tools: [files] });
    const expected = await endedResponse(first, id);
    await first.end();
    expect(expected.response.status).toBe("completed");
    expect(expected.texts).toEqual([
      "Let me see.Saved. Once more:All is saved.",
      "I must look.",
      "",
    ]);

    let continued = 0;
    let written = 0;
    for (const [index, moment] of moments.entries()) {
      forgetProcesses(moment.path);
      if (!isAtWork(moment.path)) continue;
      continued += 1;
      ran = [...moment.ran];
      // The same tokens come in other pieces.
      const next = await serve(moment.path, { chunk: 5 });
      const { response, texts } = await endedResponse(next, id);
      await next.end();
      expect(response.status, `after write ${index}`).toBe("completed");
      expect(texts, `after write ${index}`).toEqual(expected.texts);
      written = response.usage.output_tokens;
      const plain = (list: Json) =>
        list.map(({ type, name, args, text }: Json) => [type, name, args, text]);
      expect(plain(outputOf(response))).toEqual(plain(outputOf(expected.response)));
      expect(ran.filter((name) => name === "save").length).toBeLessThanOrEqual(2);
    }
    expect(continued).toBeGreaterThan(15);
    // The last process knows the last round only: its text and its end.
    expect(written).toBe("All is saved.".length + 1);
  },
);

test("calls of the client that are being written go on where they were", async () => {
  const custom = `{"name":"patch","arguments":{"input":"milk\\n\\"and\\" bread"}}`;
  const says = [`${call("look")}<tool_call>\n${custom}\n</tool_call>`];
  const { first, moments } = await serveWatched({ chunk: 5, says });
  const look = { type: "function", name: "look", parameters: { type: "object" } };
  const id = await beginResponse(first, {
    input: "Go.",
    tools: [look, { type: "custom", name: "patch" }],
  });
  const expected = await endedResponse(first, id);
  await first.end();
  expect(expected.response.output).toMatchObject([
    { type: "function_call", arguments: '{"of":"milk"}' },
    { type: "custom_tool_call", input: 'milk\n"and" bread' },
  ]);
  expect(expected.texts).toEqual(["", "", 'milk\n"and" bread']);

  const told = ({ response, texts }: Json): Json => [
    texts,
    response.output.map(({ id: _id, call_id: _callId, ...item }: Json) => item),
  ];
  let continued = 0;
  for (const [index, { path }] of moments.entries()) {
    forgetProcesses(path);
    if (!isAtWork(path)) continue;
    continued += 1;
    const next = await serve(path, { chunk: 3, says });
    expect(told(await endedResponse(next, id)), `after write ${index}`).toEqual(told(expected));
    await next.end();
  }
  expect(continued).toBeGreaterThan(10);
});

describe("it is told why a run cannot go on", () => {
  const cut = async (change: string, next: { template?: string; vocabularySize?: number } = {}) => {
    const path = at("store.sqlite");
    let copy = "";
    const first = await serve(path, {
      chunk: 16,
      watch: () => {
        const database = new Database(path);
        const row = database.prepare("SELECT count(*) AS told FROM branched_events").get();
        database.close();
        if ((row as { told: number }).told === 3) copy = copyOf(path, "copy.sqlite");
      },
    });
    const run = await begin(first.world, "Save milk.");
    await ended(first.world, run);
    await first.end();
    forgetProcesses(copy);
    const database = new Database(copy);
    database.exec(change);
    database.close();
    const second = await serve(copy, { chunk: 16, ...next });
    const { message, state } = await ended(second.world, run);
    await second.end();
    expect(state.reasoning).toBe("I must look.");
    expect(state.end).toMatchObject({ status: "failed", error: message.error });
    return message.error as Json;
  };

  test("it is behind text that repeated itself", async () => {
    const path = at("store.sqlite");
    const copies: string[] = [];
    const watch = (): void => void copies.push(copyOf(path, `${copies.length}.sqlite`));
    const says = [call("look"), "ha ".repeat(400), "There is milk, and bread beside it."];
    const first = await serve(path, { chunk: 64, watch, says });
    const run = await begin(first.world, "What is there?");
    const { message: whole } = await ended(first.world, run);
    await first.end();
    expect(whole.message).toMatch(/^(ha )+.*There is milk, and bread beside it\./s);

    // Behind it come the notice that no more tools are called, and the end.
    const copy = copies.at(-3)!;
    forgetProcesses(copy);
    const next = await serve(copy, { chunk: 64, says });
    const { message } = await ended(next.world, run);
    await next.end();
    expect(message).toMatchObject({
      status: "failed",
      message: expect.stringMatching(/ha\s+There is milk/),
      error: { message: "The server ended before the answer did. Ask again." },
    });
  });

  test("it was written at two ends of servers", async () => {
    const error = await cut("UPDATE branched_holds SET resumes = 1");
    expect(error.code).toBe("request_quarantined");
  });

  test.each([
    ["template", { template: "{# other #}" }],
    ["model", { vocabularySize: 501 }],
  ])("the %s is another one", async (_what, next) => {
    const error = await cut("", next);
    expect(error.message).toContain("serves another model or template now");
  });

  test("its tokens are not those of the model", async () => {
    const error = await cut("UPDATE branched_events SET tokens = '[7]' WHERE tokens IS NOT NULL");
    expect(error.message).toContain("does not fit the model or its tools any more");
  });
});
