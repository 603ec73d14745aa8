/** GET /api/traces: whose traces they are, under which ids, and who may ask. What an engine tells is in test/e2e/traces.test.ts. */

import type { FastifyInstance } from "fastify";
import { expect, test } from "vitest";
import type { Trace } from "../../src/client/types.ts";
import { ApiKeys, type KeyScope } from "../../src/server/http/api-keys.ts";
import {
  callEvents,
  createWorld,
  fakeTool,
  finish,
  provider,
  type ScriptStep,
} from "./fake-services.ts";
import { usage } from "./fake-figures.ts";

const call = { id: "call_1", name: "weather", arguments: '{"city":"a secret city"}' };
const withCall: ScriptStep[] = [
  ...callEvents(call),
  { type: "hold", calls: [call], usage },
  { type: "content", text: "It is sunny." },
  finish("stop"),
];
const messages = [{ role: "user", content: "a secret question" }];

function worldOf(...keys: [name: string, scopes: KeyScope[]][]) {
  const apiKeys = new ApiKeys(
    keys.map(([name, scopes]) => ({ key: `key-of-${name}`, name, scopes, expiresAt: null })),
  );
  const tool = fakeTool("weather", { content: "a secret result", isError: false }, "home");
  return createWorld({ tools: provider(tool), config: { apiKeys } });
}

function asked(app: FastifyInstance, url: string, payload?: object, key = "key-of-anna") {
  const headers = { authorization: `Bearer ${key}` };
  return payload === undefined
    ? app.inject({ url, headers })
    : app.inject({ method: "POST", url, headers, payload });
}

test.each([
  ["/v1/chat/completions", { messages }],
  ["/v1/responses", { input: "a secret question" }],
  ["/v1/messages", { messages, max_tokens: 50 }],
  ["/api/chat", { model: "default", messages, stream: false }],
])("%s: the trace is found by the id of the answer and of the request", async (url, payload) => {
  const { app, chat } = worldOf(["anna", ["infer", "tools", "admin"]]);
  chat.script = withCall;
  const reply = await asked(app, url, payload);
  expect(reply.statusCode, reply.body).toBe(200);
  const requestId = String(reply.headers["x-request-id"]);
  const { id = requestId } = reply.json() as { id?: string };
  const trace = (await asked(app, `/api/traces/${id}`)).json() as Trace;
  expect(trace).toMatchObject({
    id,
    request_id: requestId,
    endpoint: url,
    status: "complete",
    calls: [{ tool: "weather", server: "home", agent: null, outcome: "ok", approval_ms: 0 }],
  });
  const [ran] = trace.calls;
  expect(ran!.end_ms).toBeGreaterThanOrEqual(ran!.start_ms);
  expect(trace.duration_ms).toBeGreaterThanOrEqual(ran!.end_ms!);
  expect((await asked(app, `/api/traces/${requestId}`)).json()).toEqual(trace);
  expect((await asked(app, "/api/traces")).json()).toEqual({ traces: [trace] });
  expect(JSON.stringify(trace)).not.toContain("secret");
});

test("a text completion with several choices is one trace", async () => {
  const { app } = worldOf(["anna", ["infer", "admin"]]);
  const reply = await asked(app, "/v1/completions", { prompt: "Once", n: 3 });
  const { id } = reply.json() as { id: string };
  const { traces } = (await asked(app, "/api/traces")).json() as { traces: Trace[] };
  expect(traces.map((trace) => [trace.id, trace.status])).toEqual([[id, "complete"]]);
});

test("a key sees its own traces alone, and only with the scope admin", async () => {
  const all: KeyScope[] = ["infer", "tools", "admin"];
  const { app } = worldOf(["anna", all], ["bert", all], ["carl", ["infer"]]);
  const { id } = (await asked(app, "/v1/chat/completions", { messages })).json() as { id: string };
  expect((await asked(app, `/api/traces/${id}`)).statusCode).toBe(200);
  const ofBert = await asked(app, `/api/traces/${id}`, undefined, "key-of-bert");
  expect(ofBert.statusCode).toBe(404);
  expect(ofBert.json()).toMatchObject({ error: { code: "not_found", param: "id" } });
  expect((await asked(app, "/api/traces", undefined, "key-of-bert")).json()).toEqual({
    traces: [],
  });
  const ofCarl = await asked(app, "/api/traces", undefined, "key-of-carl");
  expect(ofCarl.statusCode).toBe(403);
  expect(ofCarl.json()).toMatchObject({ error: { code: "scope_missing" } });
});

test("what failed and what was refused", async () => {
  const { app, chat } = worldOf(["anna", ["infer", "admin"]]);
  chat.script = [{ type: "content", text: "Hm." }, { fail: new Error("broken") }];
  await asked(app, "/v1/chat/completions", { messages });
  // Refused before anything runs: there is nothing to trace.
  await asked(app, "/v1/chat/completions", { messages: 1 });
  const { traces } = (await asked(app, "/api/traces")).json() as { traces: Trace[] };
  expect(traces.map(({ status }) => status)).toEqual(["failed"]);
  for (const limit of ["0", "101", "many"]) {
    const reply = await asked(app, `/api/traces?limit=${limit}`);
    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ error: { param: "limit" } });
  }
});
