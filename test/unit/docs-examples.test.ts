/** The configuration files and lines that README and the guides show are read, or written, as they stand there. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { checkAgentServers, parseAgentsConfig } from "../../src/agents/agents-config.ts";
import { readKeysFile } from "../../src/cli/keys-file.ts";
import { approvalOf, isOffered } from "../../src/mcp/rules.ts";
import { parseMcpConfig } from "../../src/mcp/config.ts";
import { CallAudit } from "../../src/tools/call-audit.ts";
import { serveConfig } from "../support/serve-config.ts";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "fermata-examples-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The blocks of JSON in a file, as text. */
function blocks(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8");
  return [...text.matchAll(/^```json\n(.*?)^```$/gms)].map(([, block]) => block!);
}

test("docs/agents.md: the supervisor may delegate to both, and each has what stands there", () => {
  const [json] = blocks("docs/agents.md");
  const config = parseAgentsConfig(JSON.parse(json!), "agents.json", { EXAMPLE_KEY: "k" });
  checkAgentServers(config, "agents.json", ["filesystem"]);
  expect(config.supervisor).toBe("boss");
  const { boss, reader, thinker } = Object.fromEntries(config.agents);
  expect(boss).toMatchObject({
    delegates: ["reader", "thinker"],
    limits: { tokens: 8000, seconds: 300, calls: 100, depth: 3 },
  });
  expect(reader!.instructions).toBe("You work for the harbour master.\n\nQuote, do not guess.");
  expect(reader!.tools).toEqual(
    new Map([["filesystem", new Set(["list_directory", "read_text_file"])]]),
  );
  expect(thinker!.source).toEqual({
    kind: "endpoint",
    endpoint: {
      url: "https://api.example.com/v1",
      model: "large",
      apiKey: "k",
      timeoutMs: 120_000,
      contextSize: 131_072,
    },
  });
});

test("docs/mcp.md: two servers with their rules", () => {
  const [json] = blocks("docs/mcp.md");
  const environment = { HOME: "/home/ann", HUB_TOKEN: "t" };
  const [files, hub] = parseMcpConfig(JSON.parse(json!), "mcp.json", environment);
  expect(files).toMatchObject({ id: "files", command: "npx" });
  expect(files).toHaveProperty("args.2", "/home/ann/notes");
  const unknown = { readOnly: false, destructive: false };
  expect(isOffered(files!.rules!, "move_file")).toBe(false);
  expect(approvalOf(files!.rules!, "write_file", unknown)).toBe("always");
  expect(approvalOf(files!.rules!, "create_directory", unknown)).toBe("never");
  expect(hub).toMatchObject({ id: "hub", headers: { Authorization: "Bearer t" } });
  expect(isOffered(hub!.rules!, "search_all")).toBe(true);
  expect(isOffered(hub!.rules!, "write")).toBe(false);
});

test.each([
  ["README.md", "files", "npx"],
  ["docs/mcp.md", "fermata", "fermata"],
])("%s: a file for MCP hosts, with the server %s", (file, id, command) => {
  const servers = blocks(file)
    .filter((block) => block.includes(`"${id}"`))
    .map((block) => parseMcpConfig(JSON.parse(block), "mcp.json", { HOME: "/", HUB_TOKEN: "t" }));
  expect(servers.at(-1)![0]).toMatchObject({ id, command });
});

test("docs/cli.md: a fermata.json that needs no trust, and named keys", () => {
  const [options, keys] = blocks("docs/cli.md");
  writeFileSync(join(folder, "fermata.json"), options!);
  expect(serveConfig([], { XDG_CONFIG_HOME: folder }, folder)).toMatchObject({
    ctxSize: 16_384,
    parallel: 8,
    toolTimeout: { silence: 120, approval: 900 },
  });
  let count = 0;
  const path = join(folder, "keys.json");
  writeFileSync(
    path,
    keys!.replaceAll("…", () => `key-${++count}`),
  );
  const all = ["infer", "tools", "admin"];
  expect(readKeysFile(path, { WEB_KEY: "w" })).toEqual([
    { name: "web", key: "w", scopes: ["infer"], expiresAt: null },
    {
      name: "team-a",
      key: "key-1",
      scopes: ["infer", "tools"],
      expiresAt: Date.parse("2027-01-31"),
    },
    { name: "operator", key: "key-2", scopes: all, expiresAt: null },
  ]);
});

test("docs/mcp.md: the audit log's two lines have these keys, in this order", async () => {
  const [shown] = blocks("docs/mcp.md").filter((block) => block.includes('"event":"start"'));
  const path = join(folder, "audit.jsonl");
  const audit = new CallAudit(path, (error) => expect.unreachable(String(error)));
  const call = { id: "call_1", name: "files_write_file", arguments: '{"path": "a"}' };
  const entry = { call, server: "files", owner: "o", approvedBy: "o" };
  await audit.started(entry);
  await audit.ended(entry, { outcome: "ok", content: "written", milliseconds: 12 });
  await audit.close();
  const keys = (text: string): string[][] =>
    text
      .trim()
      .split("\n")
      .map((line) => Object.keys(JSON.parse(line) as object));
  expect(keys(readFileSync(path, "utf8"))).toEqual(keys(shown!));
});
