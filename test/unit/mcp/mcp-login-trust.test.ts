/** Whom a login trusts: authorization servers, their addresses and their names. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { McpCredentials } from "../../../src/mcp/login/credentials.ts";
import { McpHost } from "../../../src/mcp/host.ts";
import { distrustOf, isPrivate } from "../../../src/mcp/login/login-checks.ts";
import { login } from "../../../src/mcp/login/login.ts";
import type { McpOAuth } from "../../../src/mcp/settings.ts";
import { type LoginServer, startLoginServer } from "../../support/login-server.ts";

describe("a login", () => {
  let folder = "";
  let credentials: McpCredentials;
  let server: LoginServer;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "fermata-login-"));
    credentials = new McpCredentials(join(folder, "credentials.json"));
    server = await startLoginServer();
  });
  afterEach(async () => {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const config = (oauth?: McpOAuth) =>
    ({ id: "hub", url: server.url, oauth, transport: "auto", headers: {} }) as const;

  const logIn = (oauth?: McpOAuth): Promise<void> =>
    login(config(oauth), credentials, {
      version: "0",
      open: (page) => void fetch(page),
      signal: new AbortController().signal,
    });

  /** The same server, by an address that may be another machine's. */
  const openOrigin = (): string => new URL(server.url.replace("127.0.0.1", "0.0.0.0")).origin;

  test.each(["token_endpoint", "registration_endpoint"])(
    "a %s that is not https is refused before anybody logs in",
    async (name) => {
      server.needs = { initialize: "see" };
      const [what] = name.split("_");
      const origin = openOrigin();
      server.metadata = { [name]: `${origin}/${what === "token" ? "token" : "register"}` };
      await expect(logIn()).rejects.toMatchObject({
        code: "mcp_login_failed",
        message: `The login failed: its ${what} endpoint is not https: ${origin}.`,
      });
      expect(server.seen).toEqual({ register: [], authorize: [], token: [] });
    },
  );

  test("so is an authorization server", async () => {
    server.needs = { initialize: "see" };
    const origin = openOrigin();
    server.resource = { authorization_servers: [origin] };
    await expect(logIn()).rejects.toMatchObject({
      code: "mcp_login_failed",
      message: `The login failed: its authorization server is not https: ${origin}.`,
    });
    expect(server.seen.register).toEqual([]);
  });

  test("so is a login page, before a client is registered", async () => {
    server.needs = { initialize: "see" };
    const origin = openOrigin();
    server.metadata = { authorization_endpoint: `${origin}/authorize` };
    await expect(logIn()).rejects.toMatchObject({
      code: "mcp_login_failed",
      message: `The login failed: its login page is not https: ${origin}.`,
    });
    expect(server.seen.register).toEqual([]);
  });

  test("so is the address of what one logs in for", async () => {
    server.needs = { initialize: "see" };
    const origin = openOrigin();
    server.demand = `, resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
    await expect(logIn()).rejects.toMatchObject({
      code: "mcp_login_failed",
      message: `The login failed: its resource_metadata is not https: ${origin}.`,
    });
  });

  test("at a refresh, the authorization server is looked at anew", async () => {
    server.needs = { "tools/list": "see" };
    await logIn();
    const { tokens, ...login } = credentials.find(server.url)!;
    const ended = { ...login, tokens: { ...tokens!, access_token: "ended" } };
    const errorNow = async (): Promise<string | null> => {
      credentials.set(server.url, ended);
      const log = { debug() {}, info() {}, warn() {} };
      const host = new McpHost([config()], { log, version: "0", credentials });
      await host.start();
      const { error } = host.servers()[0]!;
      await host.close();
      return error;
    };
    server.metadata = { token_endpoint: `${openOrigin()}/token` };
    expect(await errorNow()).toContain("its token endpoint is not https");
    // At another one, the login is not known.
    server.metadata = {};
    const other = new URL(server.url.replace("127.0.0.1", "localhost")).origin;
    server.resource = { authorization_servers: [other] };
    expect(await errorNow()).toContain("Run: fermata mcp login hub");
    expect(server.seen.register).toHaveLength(1);
    expect(server.seen.token).toHaveLength(1);
    server.resource = {};
    expect(await errorNow()).toBe(null);
    expect(server.seen.token[1]!.get("grant_type")).toBe("refresh_token");
  });

  test("what a server elsewhere names is not on this machine", () => {
    const here = "http://127.0.0.1:8000/token";
    expect(isPrivate(here, "http://localhost:3000/mcp")).toBe(true);
    expect(isPrivate(here, "https://hub.example/mcp")).toBe(false);
    expect(isPrivate("https://login.example/token", "https://hub.example/mcp")).toBe(true);
    expect(isPrivate("ftp://localhost/token", "http://localhost:3000/mcp")).toBe(false);
  });

  test("an authorization server of another name must have all at its own address, or the operator's word", async () => {
    server.needs = { initialize: "see" };
    const origin = new URL(server.url).origin;
    const issuer = "https://login.example/{tenantid}/v2.0";
    server.metadata = { issuer };
    await logIn();
    server.metadata = { issuer: `${origin}/` };
    await logIn();
    // One server shows another's login page: the code would go to the first.
    const page = `${origin.replace("127.0.0.1", "localhost")}/authorize`;
    server.metadata = { issuer, authorization_endpoint: page };
    await expect(logIn()).rejects.toMatchObject({
      code: "mcp_login_failed",
      message: `The login failed: the authorization server at ${origin}/ calls itself ${issuer}, and its login page is elsewhere. If that is right, add "issuer": "${issuer}" to "oauth" of the MCP configuration.`,
    });
    expect(server.seen.token).toHaveLength(2);
    await logIn({ issuer });
    server.metadata = {};
    await expect(logIn({ issuer })).rejects.toThrow(
      `calls itself ${origin}, and "issuer" in "oauth" of the MCP configuration is another`,
    );
    expect(server.seen.token).toHaveLength(3);
  });

  test("an authorization server that does not say that it checks PKCE gets no login, but at the operator's word", async () => {
    server.needs = { initialize: "see" };
    const { origin } = new URL(server.url);
    server.metadata = { code_challenge_methods_supported: undefined };
    await expect(logIn()).rejects.toMatchObject({
      code: "mcp_login_failed",
      message: `The login failed: the authorization server at ${origin}/ does not say that it checks PKCE ("code_challenge_methods_supported"). If you know that it does, add "pkce": true to "oauth" of the MCP configuration.`,
    });
    for (const methods of [[], ["plain"]]) {
      server.metadata = { code_challenge_methods_supported: methods };
      await expect(logIn({ pkce: true })).rejects.toThrow("does not check PKCE with S256");
    }
    expect(server.seen).toEqual({ register: [], authorize: [], token: [] });
    server.metadata = { code_challenge_methods_supported: undefined };
    await logIn({ pkce: true });
    expect(server.seen.authorize[0]!.get("code_challenge_method")).toBe("S256");
    expect(server.seen.token[0]!.get("code_verifier")).toMatch(/^[\w.~-]{43,}$/);
  });

  test("an answer that names another authorization server, or none where it must, gets no further", async () => {
    server.needs = { initialize: "see" };
    const stranger = {
      code: "mcp_login_failed",
      message: expect.stringContaining("not from the authorization server that was asked"),
    };
    server.issuer = "https://elsewhere.example";
    await expect(logIn()).rejects.toMatchObject(stranger);
    server.issuer = null;
    server.metadata = { authorization_response_iss_parameter_supported: true };
    await expect(logIn()).rejects.toMatchObject(stranger);
    expect(server.seen.token).toEqual([]);
    server.issuer = new URL(server.url).origin;
    await logIn();
    expect(server.seen.token).toHaveLength(1);
  });
});

test.each([
  ["https://cf.mcp.example.com/token", null],
  ["https://mcp.example.com/token", null],
  ["https://example.com/token", /its token endpoint is elsewhere/],
  ["https://evil-mcp.example.com/token", /its token endpoint is elsewhere/],
  ["https://mcp.example.com.evil.org/token", /its token endpoint is elsewhere/],
])("a server of another name may have its tokens below its address: %s", (token, expected) => {
  const problem = distrustOf(
    { id: "hub", url: "https://mcp.example.com/v1" },
    {
      authorizationServerUrl: "https://mcp.example.com/",
      authorizationServerMetadata: {
        issuer: "https://cf.mcp.example.com",
        authorization_endpoint: "https://mcp.example.com/authorize",
        token_endpoint: token,
        response_types_supported: ["code"],
      },
    },
  );
  if (expected === null) expect(problem).toBeNull();
  else expect(problem).toMatch(expected);
});
