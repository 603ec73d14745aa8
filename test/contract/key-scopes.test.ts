/** A key without the scope `tools`: the server runs nothing for it. */

import { expect, test, vi } from "vitest";
import { ApiKeys, type KeyScope } from "../../src/server/http/api-keys.ts";
import { callEvents, createWorld, finish, provider } from "./fake-services.ts";
import { usage } from "./fake-figures.ts";

const call = { id: "call_1", name: "delete_file", arguments: "{}" };
const key = (name: string, scopes: KeyScope[]) => ({
  key: `key-of-${name}`,
  name,
  scopes,
  expiresAt: null,
});

test("a call of the server's tool runs with the scope, and is refused to the model without it", async () => {
  let ran = 0;
  const tool = {
    definition: { name: "delete_file", description: "Deletes.", parameters: { type: "object" } },
    server: "files",
    call: async () => ({ content: `deleted ${++ran}`, isError: false }),
  };
  const apiKeys = new ApiKeys([key("anna", ["infer"]), key("bert", ["infer", "tools"])]);
  const world = createWorld({ tools: provider(tool), config: { apiKeys } });
  const ask = async (name: string): Promise<void> => {
    world.chat.script = [
      ...callEvents(call),
      { type: "hold" as const, calls: [call], usage },
      { type: "content" as const, text: "Done." },
      finish("stop"),
    ];
    const reply = await world.app.inject({
      method: "POST",
      url: "/v1/chat/completions",
      headers: { authorization: `Bearer key-of-${name}` },
      payload: { messages: [{ role: "user", content: "Delete a." }] },
    });
    expect(reply.statusCode).toBe(200);
  };
  await ask("anna");
  expect(ran).toBe(0);
  await ask("bert");
  expect(ran).toBe(1);
});

test("a key without the scope `infer` asks for no answer", async () => {
  const apiKeys = new ApiKeys([key("anna", ["admin"])]);
  const { app } = createWorld({ config: { apiKeys } });
  const headers = { authorization: "Bearer key-of-anna" };
  const payload = { messages: [{ role: "user", content: "Hi" }] };
  const chat = { method: "POST", url: "/v1/chat/completions", headers, payload } as const;
  expect((await app.inject(chat)).statusCode).toBe(403);
  expect((await app.inject({ url: "/metrics", headers })).statusCode).toBe(200);
});

test("what goes on for a key that was taken back runs no tools", () => {
  const apiKeys = new ApiKeys([key("anna", ["tools"]), key("bert", ["tools"])]);
  const known = apiKeys.withKey("key-of-anna");
  if (known === null || known === "expired") throw new Error("The key is not known.");
  expect(apiKeys.mayRunTools(known.owner)).toBe(true);
  apiKeys.replace([key("bert", ["tools"])]);
  expect(apiKeys.mayRunTools(known.owner)).toBe(false);
});

test("a key expires while the server runs", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const minute = { ...key("anna", ["infer"]), expiresAt: Date.now() + 60_000 };
    const { app } = createWorld({ config: { apiKeys: new ApiKeys([minute]) } });
    const models = { url: "/v1/models", headers: { authorization: "Bearer key-of-anna" } };
    expect((await app.inject(models)).statusCode).toBe(200);
    vi.setSystemTime(Date.now() + 61_000);
    expect((await app.inject(models)).statusCode).toBe(401);
  } finally {
    vi.useRealTimers();
  }
});

test("a key that has expired is told so", async () => {
  const expired = { ...key("anna", ["infer"]), expiresAt: Date.now() - 1 };
  const { app } = createWorld({ config: { apiKeys: new ApiKeys([expired]) } });
  const headers = { authorization: "Bearer key-of-anna" };
  const reply = await app.inject({ url: "/v1/models", headers });
  expect([reply.statusCode, reply.json()]).toMatchObject([
    401,
    {
      error: { code: "unauthorized", message: expect.stringMatching(/^The API key has expired\./) },
    },
  ]);
});
