import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { mcpServerFromCommand, parseMcpConfig, readMcpConfig } from "../../../src/mcp/config.ts";
import {
  approvalOf,
  isOffered,
  isReadOnly,
  noRules,
  unusedPatterns,
} from "../../../src/mcp/rules.ts";

test("what is said of a login", () => {
  const oauth = { clientId: "it", clientSecret: "secret", scope: "see", callbackPort: 8123 };
  const url = "https://hub.example/mcp";
  const read = (given: object) =>
    parseMcpConfig({ mcpServers: { hub: { url, oauth: given } } }, "mcp.json")[0];
  const issuer = "https://login.example";
  expect(read({ ...oauth, issuer, tokenUrl: "of others" })).toMatchObject({
    oauth: { ...oauth, issuer },
  });
  expect(() => read({ issuer: 1 })).toThrow("issuer");
  expect(() => read({ pkce: "yes" })).toThrow("pkce");
  expect(() => read({ isuer: issuer })).toThrow("isuer");
});

test("whether the model reads a server's instructions", () => {
  const read = (more: object) =>
    parseMcpConfig({ mcpServers: { hub: { command: "hub", ...more } } }, "mcp.json")[0];
  expect(read({})).toMatchObject({ instructions: true });
  expect(read({ instructions: false })).toMatchObject({ instructions: false });
  expect(() => read({ instructions: "no" })).toThrow("instructions");
});

test("the form that other hosts use", () => {
  const json = {
    mcpServers: {
      filesystem: { command: "npx", args: ["-y", "server-filesystem", "/data"] },
      github: { command: "npx", args: [], env: { TOKEN: "t" }, cwd: "/srv" },
      bare: { command: "tool", type: "stdio" },
      off: { command: "tool", disabled: true },
    },
  };
  expect(parseMcpConfig(json, "mcp.json")).toEqual(
    [
      {
        id: "filesystem",
        command: "npx",
        args: ["-y", "server-filesystem", "/data"],
        env: {},
        cwd: undefined,
      },
      { id: "github", command: "npx", args: [], env: { TOKEN: "t" }, cwd: "/srv" },
      { id: "bare", command: "tool", args: [], env: {}, cwd: undefined },
    ].map((server) => expect.objectContaining({ ...server, rules: noRules, ignoredKeys: [] })),
  );
});

test("servers that run elsewhere, with variables", () => {
  const json = {
    mcpServers: {
      hub: {
        url: "https://${HOST:-mcp.example.com}/mcp",
        headers: { Authorization: "Bearer ${env:TOKEN}" },
      },
      old: { type: "sse", url: "http://127.0.0.1:3001/sse" },
      new: { transport: "streamable-http", url: "http://127.0.0.1:3001/mcp" },
      off: { url: "https://${NO_SUCH_VARIABLE}", disabled: true },
    },
  };
  expect(parseMcpConfig(json, "mcp.json", { TOKEN: "t" })).toEqual([
    expect.objectContaining({
      id: "hub",
      url: "https://mcp.example.com/mcp",
      transport: "auto",
      headers: { Authorization: "Bearer t" },
    }),
    expect.objectContaining({ id: "old", transport: "sse" }),
    expect.objectContaining({ id: "new", transport: "http" }),
  ]);
});

test("rules for tools, time limits, keys of other programs", () => {
  const entry = {
    command: "tool",
    tools: { allow: ["read_*", "write"], deny: ["read_secret"] },
    readOnly: ["read_*"],
    approval: { "*": "annotations", "read_*": "never", write: "always" },
    startTimeoutSeconds: 120,
    timeoutSeconds: 5,
    totalTimeoutSeconds: 50,
    autoApprove: ["write"],
  };
  const [server] = parseMcpConfig({ mcpServers: { one: entry } }, "mcp.json");
  const unknown = { readOnly: false, destructive: true };
  const rules = server!.rules!;
  expect(server).toMatchObject({
    startTimeoutMs: 120_000,
    timeoutMs: 5000,
    totalTimeoutMs: 50_000,
    ignoredKeys: ["autoApprove"],
  });
  const names = ["read_file", "read_secret", "write", "delete"];
  expect(names.filter((name) => isOffered(rules, name))).toEqual(["read_file", "write"]);
  expect(names.filter((name) => isReadOnly(rules, name, unknown))).toEqual(names.slice(0, 2));
  expect(names.map((name) => approvalOf(rules, name, unknown))).toEqual([
    "never",
    "never",
    "always",
    "always",
  ]);
  const harmless = { readOnly: true, destructive: true };
  expect(approvalOf(rules, "delete", harmless)).toBe("never");
  expect(approvalOf(rules, "write", harmless)).toBe("always");
  expect(unusedPatterns(rules, ["read_file", "write"])).toEqual(["read_secret"]);
});

test("patterns", () => {
  const offers = (pattern: string, name: string): boolean =>
    isOffered({ ...noRules, allow: [pattern] }, name);
  expect(offers("a*b*c", "a1b2c")).toBe(true);
  expect(offers("a*b*c", "abc")).toBe(true);
  expect(offers("a*bc", "abc")).toBe(true);
  expect(offers("ab*bc", "abc")).toBe(false);
  expect(offers("a*b*c", "acb")).toBe(false);
  expect(offers("a.c", "abc")).toBe(false);
  expect(offers("*", "")).toBe(true);
  expect(offers(`${"a*".repeat(50)}b`, "a".repeat(5000))).toBe(false);
});

test("files of other programs", () => {
  const servers = parseMcpConfig(
    {
      mcpServers: {
        copilot: { type: "local", command: "npx", args: ["x"], tools: ["*"] },
        gemini: { httpUrl: "http://x/mcp", includeTools: ["a"], excludeTools: ["b"] },
        windsurf: { serverUrl: "http://x/mcp", disabledTools: ["b"] },
        off: { command: "npx", enabled: false },
      },
    },
    "mcp.json",
  );
  expect(servers).toMatchObject([
    { id: "copilot", command: "npx", rules: { allow: ["*"], deny: [] } },
    { id: "gemini", url: "http://x/mcp", transport: "http", rules: { allow: ["a"], deny: ["b"] } },
    { id: "windsurf", url: "http://x/mcp", transport: "auto", rules: { allow: null, deny: ["b"] } },
  ]);
});

test("a single command", () => {
  expect(mcpServerFromCommand("npx", ["-y"])).toEqual({
    id: "mcp",
    command: "npx",
    args: ["-y"],
    env: {},
  });
});

describe("a mistake names the file and the key", () => {
  const one = (entry: unknown) => ({ mcpServers: { fs: entry } });
  const cases: [json: unknown, key: string][] = [
    [{}, "mcpServers"],
    [{ mcpServers: [] }, "mcpServers"],
    [one("npx"), "mcpServers.fs"],
    [one({}), "mcpServers.fs.command"],
    [one({ command: 5 }), "mcpServers.fs.command"],
    [one({ command: "x", args: "a" }), "mcpServers.fs.args"],
    [one({ command: "x", args: ["a", 5] }), "mcpServers.fs.args[1]"],
    [one({ command: "x", env: { A: 1 } }), "mcpServers.fs.env.A"],
    [one({ command: "x", cwd: 1 }), "mcpServers.fs.cwd"],
    [one({ url: "ftp://x" }), "mcpServers.fs.url"],
    [one({ url: "http://x", command: "y" }), "mcpServers.fs.url"],
    [one({ url: "http://x", type: "stdio" }), "mcpServers.fs.type"],
    [one({ url: "http://x", transport: "websocket" }), "mcpServers.fs.transport"],
    [one({ url: "http://x", headers: { "a b": "c" } }), "mcpServers.fs.headers.a b"],
    [one({ url: "http://x", headers: { a: "c\r\nd: e" } }), "mcpServers.fs.headers.a"],
    [one({ url: "http://x", headers: { a: "${NO_SUCH_VARIABLE}" } }), "mcpServers.fs.headers.a"],
    [one({ type: "http", command: "x" }), "mcpServers.fs.url"],
    [one({ command: "x", headers: {} }), "mcpServers.fs.headers"],
    [one({ command: "x", disabled: "yes" }), "mcpServers.fs.disabled"],
    [one({ command: "x", tools: "a" }), "mcpServers.fs.tools"],
    [one({ command: "x", tools: ["a"], includeTools: ["a"] }), "mcpServers.fs.includeTools"],
    [one({ command: "x", tools: { deny: [] }, disabledTools: [] }), "mcpServers.fs.disabledTools"],
    [one({ command: "x", disabledTools: [], excludeTools: [] }), "mcpServers.fs.excludeTools"],
    [one({ url: "http://x", serverUrl: "http://y" }), "mcpServers.fs.serverUrl"],
    [one({ httpUrl: "ftp://x" }), "mcpServers.fs.httpUrl"],
    [one({ httpUrl: "http://x", command: "y" }), "mcpServers.fs.httpUrl"],
    [one({ command: "x", enabled: "no" }), "mcpServers.fs.enabled"],
    [one({ command: "x", tools: { allowed: ["a"] } }), "mcpServers.fs.tools.allowed"],
    [one({ command: "x", tools: { deny: "a" } }), "mcpServers.fs.tools.deny"],
    [one({ command: "x", tools: { allow: [] }, allowedTools: [] }), "mcpServers.fs.allowedTools"],
    [one({ command: "x", approval: "ask" }), "mcpServers.fs.approval"],
    [one({ command: "x", approval: { write: "ask" } }), "mcpServers.fs.approval.write"],
    [one({ command: "x", readOnly: "a" }), "mcpServers.fs.readOnly"],
    [one({ command: "x", timeoutSeconds: 0 }), "mcpServers.fs.timeoutSeconds"],
    [one({ command: "x", startTimeoutSeconds: "1m" }), "mcpServers.fs.startTimeoutSeconds"],
    [one({ command: "x", alowedTools: [] }), "mcpServers.fs.alowedTools"],
  ];
  test.each(cases)("%j", (json, key) => {
    expect(() => parseMcpConfig(json, "mcp.json")).toThrow(
      expect.objectContaining({
        code: "mcp_config_invalid",
        param: key,
        message: expect.stringContaining(`mcp.json: "${key}"`),
      }),
    );
  });

  test("no file, and no JSON", () => {
    const directory = mkdtempSync(join(tmpdir(), "fermata-"));
    const path = join(directory, "mcp.json");
    expect(() => readMcpConfig(path)).toThrow(
      expect.objectContaining({
        code: "mcp_config_invalid",
        message: expect.stringContaining(path),
      }),
    );
    writeFileSync(path, "{");
    expect(() => readMcpConfig(path)).toThrow("is not valid JSON");
  });
});
