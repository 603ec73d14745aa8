import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  mcpServerFromCommand,
  parseMcpConfig,
  readMcpConfig,
} from "../../../src/mcp/mcp-config.ts";

test("the form that other hosts use", () => {
  const json = {
    mcpServers: {
      filesystem: { command: "npx", args: ["-y", "server-filesystem", "/data"] },
      github: { command: "npx", args: [], env: { TOKEN: "t" }, cwd: "/srv" },
      bare: { command: "tool", type: "stdio" },
      off: { command: "tool", disabled: true },
    },
  };
  expect(parseMcpConfig(json, "mcp.json")).toEqual([
    {
      id: "filesystem",
      command: "npx",
      args: ["-y", "server-filesystem", "/data"],
      env: {},
      cwd: undefined,
    },
    { id: "github", command: "npx", args: [], env: { TOKEN: "t" }, cwd: "/srv" },
    { id: "bare", command: "tool", args: [], env: {}, cwd: undefined },
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
    [one({ url: "http://x" }), "mcpServers.fs.url"],
    [one({ type: "http", command: "x" }), "mcpServers.fs.type"],
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
