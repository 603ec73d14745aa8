/** What opens a run's stream to a client that cannot send a header. */

import { afterEach, describe, expect, test, vi } from "vitest";
import { type ConversationsWorld, createConversationsWorld } from "./conversations-world.ts";

let world: ConversationsWorld;
afterEach(() => world.close());

describe("a client that cannot send a header", () => {
  const key = { authorization: "Bearer k1" };

  test("has a token in its address, for streams only and not for long", async () => {
    world = await createConversationsWorld({ config: { apiKeys: ["k1"] } });
    const { id } = (await world.call("POST", "/api/conversations", {}, key)).body;
    const path = `/api/conversations/${id}/runs`;
    const run = await world.call<{ stream_url: string }>("POST", path, { message: "Hi" }, key);
    const { stream_url: url } = run.body;
    expect((await world.read(url)).status).toBe(401);
    const given = await world.call<{ token: string; expires_at: number }>(
      "POST",
      "/api/stream-tokens",
      undefined,
      key,
    );
    const { token, expires_at: expiresAt } = given.body;
    expect(expiresAt * 1000 - Date.now()).toBeLessThanOrEqual(600_000);
    const { events } = await world.read(`${url}&token=${token}`);
    expect(events.map(({ event }) => event.message).join("")).toBe("Hello.");
    const changed = (token.startsWith("A") ? "B" : "A") + token.slice(1);
    expect((await world.read(`${url}&token=${changed}`)).status).toBe(401);
    const other = await world.call("GET", `/api/conversations/${id}?token=${token}`);
    expect(other.status).toBe(401);
    vi.useFakeTimers({ toFake: ["Date"], now: expiresAt * 1000 + 1 });
    expect((await world.read(`${url}&token=${token}`)).status).toBe(401);
    vi.useRealTimers();
  });

  test("has a session's cookie, from its own origin only", async () => {
    world = await createConversationsWorld({ config: { apiKeys: ["k1"] } });
    expect((await world.call("POST", "/api/session")).status).toBe(401);
    const { headers } = await world.call("POST", "/api/session", undefined, key);
    const set = headers.get("set-cookie")!;
    expect(set).toMatch(
      /^fermata_session=[\w-]+; Max-Age=\d+; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    const cookie = set.split(";", 1)[0]!;
    const { id } = (await world.call("POST", "/api/conversations", {}, { cookie })).body;
    // The same owner as with the key.
    expect((await world.call("GET", `/api/conversations/${id}`, undefined, key)).status).toBe(200);
    const { host } = new URL(world.url);
    const from = async (origin: string | null, site?: string) => {
      const browser = {
        cookie,
        ...(origin !== null && { origin }),
        ...(site !== undefined && { "sec-fetch-site": site }),
      };
      return (await world.call("GET", "/api/conversations", undefined, browser)).status;
    };
    expect(await from(`http://${host}`)).toBe(200);
    expect(await from("http://127.0.0.1:1")).toBe(401);
    expect(await from("null")).toBe(401);
    // Behind a proxy that writes another host.
    expect(await from("https://chat.example", "same-origin")).toBe(200);
    expect(await from("https://chat.example", "same-site")).toBe(401);
    // A page of another port asks without an origin for what it could show, as a picture.
    expect(await from(null, "same-site")).toBe(401);
    expect(await from(null, "none")).toBe(200);
    const gone = await world.call("DELETE", "/api/session", undefined, { cookie });
    expect(gone.headers.get("set-cookie")).toMatch(/^fermata_session=; Max-Age=0;/);
  });

  test("a key that was taken back takes its tokens with it", async () => {
    const tokenSecret = Buffer.alloc(32, 7);
    world = await createConversationsWorld({ config: { apiKeys: ["k1", "k2"], tokenSecret } });
    const k2 = { authorization: "Bearer k2" };
    const { headers } = await world.call("POST", "/api/session", undefined, k2);
    const cookie = headers.get("set-cookie")!.split(";", 1)[0]!;
    await world.close();
    for (const [apiKeys, status] of [[["k1", "k2"], 200] as const, [["k1"], 401] as const]) {
      const config = { apiKeys, tokenSecret };
      world = await createConversationsWorld({ config });
      const reply = await world.call("GET", "/api/conversations", undefined, { cookie });
      expect(reply.status).toBe(status);
      if (status === 200) await world.close();
    }
  });
});
