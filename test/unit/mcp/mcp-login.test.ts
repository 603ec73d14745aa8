/** Logins at servers that are written by hand. Those at the SDK's own authorization server are in the e2e lane. */

import { createServer, request as requestHttp } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { McpCredentials } from "../../../src/mcp/login/credentials.ts";
import { McpHost } from "../../../src/mcp/host.ts";
import { login } from "../../../src/mcp/login/login.ts";
import { withScopes } from "../../../src/mcp/login/stored-login.ts";
import type { McpOAuth } from "../../../src/mcp/settings.ts";
import { eventually } from "../../support/eventually.ts";
import { type LoginServer, startLoginServer } from "../../support/login-server.ts";
import { toolContext } from "../../support/tool-context.ts";

let folder = "";
let credentials: McpCredentials;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "fermata-login-"));
  credentials = new McpCredentials(join(folder, "credentials.json"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const configOf = (url: string, oauth?: McpOAuth) =>
  ({ id: "hub", url, oauth, transport: "auto", headers: {} }) as const;

/** A path as it is: `fetch` would parse it. */
const get = (port: string, path: string): Promise<{ status: number | undefined }> =>
  new Promise((resolve, reject) => {
    const request = requestHttp({ host: "127.0.0.1", port, path }, (response) => {
      response.resume();
      resolve({ status: response.statusCode });
    });
    request.on("error", reject).end();
  });

describe("a server that asks for logins where it is told to", () => {
  let server: LoginServer;
  const hosts: McpHost[] = [];
  beforeEach(async () => {
    server = await startLoginServer();
  });
  afterEach(async () => {
    for (const host of hosts.splice(0)) await host.close();
    await server.close();
  });

  async function start(oauth?: McpOAuth): Promise<McpHost> {
    const host = new McpHost([configOf(server.url, oauth)], {
      log: { debug() {}, info() {}, warn() {} },
      version: "0",
      credentials,
      reconnectDelayMs: 20,
      maxReconnectDelayMs: 20,
      brokenDelayMs: 20,
    });
    hosts.push(host);
    await host.start();
    return host;
  }

  /** The person opens the page. */
  const logIn = (oauth?: McpOAuth, { signal } = new AbortController()): Promise<void> =>
    login(configOf(server.url, oauth), credentials, {
      version: "0",
      open: (page) => void fetch(page),
      signal,
    });

  const callOf = async (host: McpHost, name: string): Promise<string> => {
    const tool = await eventually(() => {
      const found = host.tools().find(({ definition }) => definition.name === name);
      expect(found).toBeDefined();
      return found!;
    });
    return (await tool.call({}, toolContext())).content;
  };

  test("when its tools are listed: the host says so, and the login is found", async () => {
    server.needs = { "tools/list": "see", "tools/call": "see" };
    const host = await start();
    expect(host.servers()[0]!.error).toContain("it asks for a login. Run: fermata mcp login hub");
    await logIn();
    expect(server.seen.authorize[0]!.get("scope")).toBe("see");
    expect(await callOf(host, "read")).toBe("read ran");
  });

  test("for a call: others go on, nobody is registered unasked, and the login counts at once", async () => {
    server.needs = { write: "change" };
    const host = await start();
    expect(await callOf(host, "write")).toBe(
      "Error: it asks for a login. Run: fermata mcp login hub",
    );
    expect(await callOf(host, "read")).toBe("read ran");
    expect(server.seen.register).toEqual([]);
    await logIn();
    expect(await callOf(host, "write")).toContain('the scope "change"');
    await logIn();
    expect(await callOf(host, "write")).toBe("write ran");
    expect(host.servers()[0]).toMatchObject({ state: "ready", error: null });
  });

  test("for more scopes than the login has: the call names them, and the next login asks for all", async () => {
    server.needs = { "tools/list": "see", read: "see", write: "see change" };
    await logIn();
    const host = await start();
    expect(await callOf(host, "write")).toBe(
      'Error: it asks for a login with the scope "see change". Run: fermata mcp login hub',
    );
    expect(await callOf(host, "read")).toBe("read ran");
    // The same token again would not help.
    expect(server.seen.token.map((given) => given.get("grant_type"))).toEqual([
      "authorization_code",
    ]);
    await logIn();
    expect(server.seen.authorize[1]!.get("scope")).toBe("see change");
    expect(await callOf(host, "write")).toBe("write ran");
    // What was asked for once is asked for again.
    server.needs["read"] = "see look";
    expect(await callOf(host, "read")).toContain('the scope "see look"');
    await logIn();
    expect(server.seen.authorize[2]!.get("scope")).toBe("see change look");
  });

  test("for more scopes than the operator allows: the call says what to change", async () => {
    server.needs = { "tools/list": "see", write: "change" };
    const oauth = { scope: "see" };
    await logIn(oauth);
    const host = await start(oauth);
    expect(await callOf(host, "write")).toBe(
      'Error: it asks for a login with the scope "change". Add it to "scope" in "oauth" of the MCP configuration and run: fermata mcp login hub',
    );
    await logIn(oauth);
    expect(server.seen.authorize[1]!.get("scope")).toBe("see");
  });

  test.each(["register", "authorize", "token"] as const)(
    "scopes that are refused at %s: it says how those that calls asked for are forgotten",
    async (place) => {
      server.needs = { "tools/list": "see", write: "change" };
      const refused = { code: "mcp_login_failed", message: "The login failed: invalid_scope." };
      server.refuses = { [place]: "invalid_scope" };
      await expect(logIn()).rejects.toMatchObject(refused);
      server.refuses = {};
      await logIn();
      expect(await callOf(await start(), "write")).toContain('the scope "change"');
      server.refuses = { [place]: "invalid_scope" };
      const remedy = 'Calls asked for the scope "change"; fermata mcp logout hub forgets it.';
      const message = `${refused.message} ${remedy}`;
      await expect(logIn()).rejects.toMatchObject({ ...refused, message });
    },
  );

  test("more scopes than a login can ask for are not kept: the call says how to begin anew", async () => {
    server.needs = { "tools/list": "see", write: `change ${"x".repeat(1500)}` };
    await logIn();
    const host = await start();
    expect(await callOf(host, "write")).toContain("Run: fermata mcp login hub");
    const { lacking } = credentials.find(server.url)!;
    expect(lacking).toBe(server.needs["write"]);
    server.needs["read"] = "y".repeat(1500);
    expect(await callOf(host, "read")).toContain(
      "Calls have asked for too many. Run fermata mcp logout hub, then: fermata mcp login hub",
    );
    expect(credentials.find(server.url)!.lacking).toBe(lacking);
  });

  test("a token that is refreshed meanwhile is not lost to scopes that a call lacks", async () => {
    const { url } = server;
    const tokens = { access_token: "old", token_type: "Bearer" };
    const refreshed = { ...tokens, access_token: "new" };
    credentials.set(url, { name: "hub", tokens });
    // Closing a connection takes a while.
    const body = new ReadableStream({
      cancel: () => void credentials.set(url, { ...credentials.find(url)!, tokens: refreshed }),
    });
    const headers = { "www-authenticate": 'Bearer scope="change", error="insufficient_scope"' };
    const refusing = withScopes(
      async () => new Response(body, { status: 403, headers }),
      { id: "hub", url },
      credentials,
    );
    await expect(refusing(url)).rejects.toThrow('the scope "change"');
    expect(credentials.find(url)).toMatchObject({ tokens: refreshed, lacking: "change" });
  });

  test.each(["initialize", "tools/list"])(
    "a login that is given up while %s has no answer says why",
    async (method) => {
      const stop = new AbortController();
      server.unanswered = { [method]: () => stop.abort(new TypeError("nobody came")) };
      await expect(logIn(undefined, stop)).rejects.toThrow("nobody came");
    },
  );

  test("what is no address is no answer of the login page's", async () => {
    server.needs = { initialize: "see" };
    const open = async (page: string): Promise<void> => {
      const back = new URL(new URL(page).searchParams.get("redirect_uri")!);
      const { status } = await get(back.port, "//[");
      expect(status).toBe(404);
      await fetch(page);
    };
    let opened: Promise<void> | undefined;
    await login(configOf(server.url), credentials, {
      version: "0",
      open: (page) => (opened = open(page)),
      signal: new AbortController().signal,
    });
    await opened;
    expect(server.seen.token).toHaveLength(1);
  });

  test("one that never asks has no login", async () => {
    server.isSilent = true;
    await expect(logIn()).rejects.toMatchObject({
      code: "mcp_login_failed",
      message: "The login failed: it asks for no login.",
    });
    expect(server.seen.authorize).toEqual([]);
  });

  test("a client that registers itself asks to stay logged in, if there is a scope for it", async () => {
    server.needs = { initialize: "see" };
    server.metadata = { scopes_supported: ["see", "offline_access"] };
    await logIn();
    await logIn({ clientId: "known" });
    server.metadata = { scopes_supported: ["see"] };
    await logIn();
    expect(server.seen.authorize.map((given) => given.get("scope"))).toEqual([
      "see offline_access",
      "see",
      "see",
    ]);
  });

  test.each([
    [["none", "client_secret_basic"], "none"],
    [["private_key_jwt", "client_secret_post"], "client_secret_post"],
    [["client_secret_post", "client_secret_basic"], "client_secret_basic"],
    [undefined, "none"],
  ])("of %j, the client registers with %s", async (methods, method) => {
    server.needs = { initialize: "see" };
    server.metadata = { token_endpoint_auth_methods_supported: methods };
    await logIn();
    expect(server.seen.register[0]).toMatchObject({
      application_type: "native",
      token_endpoint_auth_method: method,
    });
  });
});

describe("a server that asks for a login, and says nothing of how", () => {
  const server = createServer((request, response) => {
    if (request.method === "POST") response.writeHead(401).end();
  });
  beforeEach(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  test("an authorization server that does not answer ends the login, which says so", async () => {
    const { port } = server.address() as AddressInfo;
    const { signal } = new AbortController();
    const open = vi.fn();
    // Not fake timers: fetch has timers of its own, which outlive the test.
    const usual = globalThis.setTimeout;
    vi.spyOn(globalThis, "setTimeout").mockImplementation(((
      run: (...given: unknown[]) => void,
      milliseconds?: number,
      ...given: unknown[]
    ) => usual(run, milliseconds === 30_000 ? 1 : milliseconds, ...given)) as typeof setTimeout);
    const config = configOf(`http://127.0.0.1:${port}/mcp`);
    await expect(login(config, credentials, { version: "0", open, signal })).rejects.toMatchObject({
      code: "mcp_login_failed",
      message: `The login failed: 127.0.0.1:${port} did not answer within 30 seconds.`,
    });
    expect(open).not.toHaveBeenCalled();
  });
});
