// Logins at a remote MCP server: `fermata mcp login`, a server that uses and refreshes what it gave, `fermata mcp logout`.
// The company that one logs in at is a fake on the SDK's own authorization router.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { McpCredentials } from "../../src/mcp/login/credentials.ts";
import { parseMcpConfig } from "../../src/mcp/config.ts";
import { McpHost } from "../../src/mcp/host.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeAuthorization, startFakeAuthorization } from "../support/fake-authorization.ts";
import { toolContext } from "../support/tool-context.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const home = mkdtempSync(join(tmpdir(), "fermata-login-"));
const config = join(home, "mcp.json");
const file = join(home, "data", "fermata", "mcp-credentials.json");

let fake: FakeAuthorization;
let servers: { mcpServers: object };
const warnings: string[] = [];
const children: ChildProcess[] = [];
let host: McpHost;

beforeAll(async () => {
  fake = await startFakeAuthorization();
  servers = { mcpServers: { hub: { url: fake.url, headers: { "x-team": "blue" } } } };
  writeFileSync(config, JSON.stringify(servers));
});
afterAll(async () => {
  await fake.close();
  rmSync(home, { recursive: true, force: true });
});
beforeEach(() => {
  const log = {
    debug() {},
    info() {},
    warn: (fields: object) => void warnings.push(JSON.stringify(fields)),
  };
  host = new McpHost(parseMcpConfig(servers, config), {
    log,
    version: "0.0.0-test",
    credentials: new McpCredentials(file),
    reconnectDelayMs: 50,
    maxReconnectDelayMs: 50,
    brokenDelayMs: 50,
  });
});
afterEach(async () => {
  await host.close();
  for (const child of children.splice(0)) child.kill();
  warnings.length = 0;
  rmSync(file, { force: true });
});

interface Command {
  out(): string;
  err(): string;
  ended: Promise<number | null>;
}

function fermata(...args: string[]): Command {
  const child = spawn(process.execPath, [join(root, "dist/cli/main.js"), "mcp", ...args], {
    cwd: home,
    env: { PATH: process.env["PATH"], HOME: home, XDG_DATA_HOME: join(home, "data") },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  const text = { out: "", err: "" };
  child.stdout.on("data", (bytes) => (text.out += String(bytes)));
  child.stderr.on("data", (bytes) => (text.err += String(bytes)));
  return {
    out: () => text.out,
    err: () => text.err,
    ended: new Promise((resolve) => child.once("close", resolve)),
  };
}

const withConfig = ["--mcp-config", config];

/** The address that the command shows, and where the authorization server sends the browser then. */
async function openLogin(command: Command): Promise<{ page: URL; callback: URL }> {
  const page = await eventually(async () => {
    const line = /^http.*$/m.exec(command.out())?.[0];
    expect(line, command.err()).toBeDefined();
    return new URL(line!);
  });
  const response = await fetch(page, { redirect: "manual" });
  expect(response.status).toBe(302);
  return { page, callback: new URL(response.headers.get("location")!) };
}

async function logIn(): Promise<void> {
  const command = fermata("login", "hub", ...withConfig);
  const { callback } = await openLogin(command);
  expect((await fetch(callback)).status).toBe(200);
  expect(await command.ended, command.err()).toBe(0);
}

async function whoami(): Promise<string> {
  const [tool] = host.tools();
  return (await tool!.call({}, toolContext())).content;
}

const stored = (): { tokens: { access_token: string; refresh_token: string } } =>
  (JSON.parse(readFileSync(file, "utf8")) as Record<string, never>)[fake.url]!;

const isReady = (): Promise<void> =>
  eventually(() => expect(host.servers()[0]).toMatchObject({ state: "ready", error: null }));

test("a server that asks for a login is told with the command, and works once somebody logged in", async () => {
  await host.start();
  expect(host.servers()[0]!.error).toContain("Run: fermata mcp login hub");
  expect(warnings.join()).toContain("it asks for a login. Run: fermata mcp login hub");
  expect(existsSync(file)).toBe(false);
  await logIn();
  await isReady();
  expect(await whoami()).toBe("known as blue");
});

test("the operator's scope is asked for, in place of those that the server names", async () => {
  const { page } = await openLogin(fermata("login", "hub", ...withConfig));
  expect(page.searchParams.get("scope")).toBe("everything");
  const narrow = join(home, "narrow.json");
  const hub = { url: fake.url, oauth: { scope: "read" } };
  writeFileSync(narrow, JSON.stringify({ mcpServers: { hub } }));
  const { page: own } = await openLogin(fermata("login", "hub", "--mcp-config", narrow));
  expect(own.searchParams.get("scope")).toBe("read");
});

test("the login has PKCE and a state, and its file is for its owner alone", async () => {
  const command = fermata("login", "hub", ...withConfig);
  const { page, callback } = await openLogin(command);
  expect(page.searchParams.get("code_challenge_method")).toBe("S256");
  expect(page.searchParams.get("code_challenge")).toMatch(/^[\w-]{43}$/);
  expect(page.searchParams.get("resource")).toBe(fake.url);
  expect(callback.hostname).toBe("127.0.0.1");
  const forged = new URL(callback);
  forged.searchParams.set("state", "guessed");
  expect((await fetch(forged)).status).toBe(400);
  forged.searchParams.delete("state");
  expect((await fetch(forged)).status).toBe(400);
  // The login goes on.
  expect((await fetch(callback)).status).toBe(200);
  expect(await command.ended).toBe(0);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(stored().tokens.refresh_token).toMatch(/./);
  expect(command.out() + command.err()).not.toContain(stored().tokens.access_token);
});

test("an access token that ended is refreshed once; the authorization server sees none of the headers", async () => {
  await logIn();
  await host.start();
  const before = stored().tokens;
  const refreshes = fake.refreshes;
  fake.revoke(false);
  expect(await whoami()).toBe("known as blue");
  expect(fake.refreshes).toBe(refreshes + 1);
  expect(stored().tokens.access_token).not.toBe(before.access_token);
  expect(stored().tokens.refresh_token).not.toBe(before.refresh_token);
  expect(fake.tokenHeaders.length).toBeGreaterThan(1);
  expect(fake.tokenHeaders.filter((headers) => "x-team" in headers)).toEqual([]);
});

test("calls that learn side by side that the access token ended stay logged in", async () => {
  await logIn();
  await host.start();
  fake.revoke(false);
  const answers = await Promise.all([whoami(), whoami(), whoami()]);
  expect(answers).toEqual(answers.map(() => "known as blue"));
  fake.revoke(false);
  expect(await whoami()).toBe("known as blue");
});

test("when nothing can be refreshed, a call says what to do and never waits; a new login mends it", async () => {
  await logIn();
  await host.start();
  fake.revoke(true);
  expect(await whoami()).toContain("Run: fermata mcp login hub");
  await logIn();
  await isReady();
  await eventually(async () => expect(await whoami()).toBe("known as blue"));
});

test("a login is of an address: another server under the same name gets no token", async () => {
  await logIn();
  const seen: (string | undefined)[] = [];
  const other = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(401).end();
  });
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}/mcp`;
  const moved = new McpHost(parseMcpConfig({ mcpServers: { hub: { url } } }, config), {
    log: { debug() {}, info() {}, warn() {} },
    version: "0.0.0-test",
    credentials: new McpCredentials(file),
  });
  await moved.start();
  await eventually(() => expect(moved.servers()[0]!.error).toContain("fermata mcp login hub"));
  await moved.close();
  other.close();
  expect(seen.length).toBeGreaterThan(0);
  expect(seen.filter(Boolean)).toEqual([]);
});

test("logout forgets the login", async () => {
  await logIn();
  expect(await fermata("logout", "hub", ...withConfig).ended).toBe(0);
  expect(readFileSync(file, "utf8")).not.toContain("token");
  const again = fermata("logout", "hub", ...withConfig);
  expect(await again.ended).toBe(2);
  expect(again.err()).toContain("Nobody is logged in at hub");
  await host.start();
  expect(host.servers()[0]!.error).toContain("fermata mcp login hub");
});

test("what a person denies, and mistakes, are said", async () => {
  const denied = fermata("login", "hub", ...withConfig);
  const { callback } = await openLogin(denied);
  callback.searchParams.delete("code");
  callback.searchParams.set("error", "access_denied");
  expect((await fetch(callback)).status).toBe(400);
  expect(await denied.ended).toBe(2);
  expect(denied.err()).toContain("The login failed: access_denied");

  const mistakes = [
    [["login"], "A server's name is missing"],
    [["log", "hub"], "Unknown action log"],
    [["login", "hud", ...withConfig], "No MCP server is called hud. Did you mean hub?"],
  ] as const;
  for (const [args, message] of mistakes) {
    const command = fermata(...args);
    expect(await command.ended).toBe(2);
    expect(command.err()).toContain(message);
  }
});
