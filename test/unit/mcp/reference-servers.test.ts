/**
 * The reference servers over every transport: all tools listed and called. server-everything speaks all
 * three by itself; server-filesystem speaks stdio and stands behind a bridge for the others.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { McpServerConfig } from "../../../src/mcp/settings.ts";
import { McpHost } from "../../../src/mcp/host.ts";
import type { Tool, ToolReport, ToolResult } from "../../../src/tools/types.ts";
import { toolContext } from "../../support/tool-context.ts";
import { eventually } from "../../support/eventually.ts";

const require = createRequire(import.meta.url);
const everything = require.resolve("@modelcontextprotocol/server-everything/dist/index.js");
const filesystem = require.resolve("@modelcontextprotocol/server-filesystem/dist/index.js");
const bridge = fileURLToPath(new URL("../../fixtures/mcp/bridge.mjs", import.meta.url));
const fixture = fileURLToPath(new URL("../../fixtures/mcp/server.mjs", import.meta.url));
const docs = new URL("../../../docs/mcp.md", import.meta.url);

const transports = ["stdio", "http", "sse"] as const;
type Transport = (typeof transports)[number];

/** Lists are read again after it: what changes before was announced. */
const aWhileMs = 600_000;

const folder = realpathSync(mkdtempSync(join(tmpdir(), "fermata-reference-")));
const file = (name: string): string => join(folder, name);
const children: ChildProcess[] = [];
const hosts: McpHost[] = [];
/** [server, tool, what came back] by transport. */
const table = new Map<string, Map<Transport, string>>();

afterAll(async () => {
  await Promise.all(hosts.map((host) => host.close()));
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

async function startHost(config: McpServerConfig): Promise<McpHost> {
  const log = { debug() {}, info() {}, warn() {} };
  const options = { log, version: "0.0.0-test", mustStart: true, refreshMs: aWhileMs };
  const host = new McpHost([config], options);
  hosts.push(host);
  await host.start();
  return host;
}

/** Below those that the system gives to whoever asks for any: nobody takes it before it is listened at. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}

async function everythingAt(transport: Transport): Promise<McpServerConfig> {
  if (transport === "stdio")
    return { id: "everything", command: process.execPath, args: [everything, "stdio"], env: {} };
  const port = await freePort();
  const kind = transport === "http" ? "streamableHttp" : "sse";
  const env = { ...process.env, PORT: String(port) };
  const child = spawn(process.execPath, [everything, kind], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  child.stdout.resume();
  child.stderr.resume();
  await eventually(async () => await fetch(`http://127.0.0.1:${port}/`));
  const path = transport === "http" ? "mcp" : "sse";
  return { id: "everything", url: `http://127.0.0.1:${port}/${path}`, transport, headers: {} };
}

const ports = { filesystem: 0, growing: 0 };
beforeAll(async () => {
  ports.filesystem = await startBridge([filesystem, folder]);
  ports.growing = await startBridge([fixture, "grow"]);
});

async function startBridge(args: string[]): Promise<number> {
  const child = spawn(process.execPath, [bridge, process.execPath, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [line] = (await once(createInterface({ input: child.stdout! }), "line")) as [string];
  return Number(line);
}

function bridged(id: keyof typeof ports, args: string[], transport: Transport): McpServerConfig {
  if (transport === "stdio") return { id, command: process.execPath, args, env: {} };
  const url = `http://127.0.0.1:${ports[id]}/${transport === "http" ? "mcp" : "sse"}`;
  // Without a type: the bridge's /sse refuses a POST, and the older form is tried.
  return { id, url, transport: "auto", headers: { Authorization: "Bearer door" } };
}

interface Sample {
  args?: Record<string, unknown>;
  content: string | RegExp;
  citations?: string[];
}

/** Calls every tool once and notes what came back. */
async function callAll(
  name: string,
  transport: Transport,
  host: McpHost,
  samples: Record<string, Sample>,
): Promise<void> {
  const tools = host.tools();
  expect(tools.map((tool) => tool.originalName)).toEqual(Object.keys(samples).toSorted());
  for (const [toolName, { args = {}, content, citations }] of Object.entries(samples)) {
    const { result, reports } = await call(tools, toolName, args);
    expect(result.isError, `${toolName}: ${result.content}`).toBe(false);
    if (typeof content === "string") expect(result.content, toolName).toBe(content);
    else expect(result.content, toolName).toMatch(content);
    expect(result.citations ?? [], toolName).toEqual(citations ?? []);
    const row = `${name} | \`${toolName}\``;
    const cells = table.get(row) ?? new Map<Transport, string>();
    cells.set(transport, describeResult(result, reports));
    table.set(row, cells);
  }
}

async function call(tools: Tool[], name: string, args: Record<string, unknown>) {
  const tool = tools.find(({ originalName }) => originalName === name)!;
  const reports: ToolReport[] = [];
  const result = await tool.call(
    args,
    toolContext(undefined, (report) => reports.push(report)),
  );
  return { result, reports };
}

function describeResult({ content, citations = [] }: ToolResult, reports: ToolReport[]): string {
  const kinds = [
    /^\[image not shown/m.test(content) ? "image, noted" : "",
    /^\[audio not shown/m.test(content) ? "audio, noted" : "",
    /^\[resource: /m.test(content) ? "resource" : "",
    /^\[resource not shown/m.test(content) ? "binary resource, noted" : "",
    content.startsWith("{") ? "JSON" : "",
  ].filter((kind) => kind !== "");
  const what = kinds.length === 0 ? "text" : kinds.join(", ");
  const cited = citations.length > 0 ? `, ${citations.length} cited` : "";
  return `${what}${cited}${reports.length > 0 ? ", progress" : ""}`;
}

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

describe.concurrent.each(transports)("over %s", (transport) => {
  test("server-everything", { timeout: 120_000 }, async () => {
    const host = await startHost(await everythingAt(transport));
    // Some tools come with a list_changed after the handshake.
    await eventually(() => expect(host.tools().length).toBeGreaterThan(12));
    await callAll("everything", transport, host, {
      echo: { args: { message: "hi" }, content: "Echo: hi" },
      // Nobody looks on here: what they ask is cancelled.
      "trigger-elicitation-request": { content: /User cancelled/ },
      "trigger-url-elicitation": {
        args: { url: "https://example.com/", message: "Sign in." },
        content: /User cancelled/,
      },
      "get-annotated-message": {
        args: { messageType: "success", includeImage: true },
        content: /^Operation completed successfully\n\[image not shown: image\/png, \d+ bytes\]$/,
      },
      "get-env": { content: /^\{\n/ },
      "get-resource-links": {
        args: { count: 2 },
        content: /\[resource: demo:\/\/resource\/dynamic\/\w+\/1 \(.+\)\]\n\[resource: demo:/,
        citations: ["demo://resource/dynamic/blob/1", "demo://resource/dynamic/text/2"],
      },
      "get-resource-reference": {
        args: { resourceType: "Text", resourceId: 1 },
        content: /\[resource: demo:\/\/resource\/dynamic\/text\/1\]\n/,
        citations: ["demo://resource/dynamic/text/1"],
      },
      "get-structured-content": {
        args: { location: "New York" },
        content: /"temperature":\s*33/,
      },
      "get-sum": { args: { a: 2, b: 3 }, content: "The sum of 2 and 3 is 5." },
      "get-tiny-image": { content: /\[image not shown: image\/png, \d+ bytes\]/ },
      "gzip-file-as-resource": {
        args: { name: "a.gz", data: "data:text/plain,hello", outputType: "resource" },
        content: /^\[resource not shown: demo:\/\/resource\/session\/a.gz, \d+ bytes\]$/,
        citations: ["demo://resource/session/a.gz"],
      },
      "simulate-research-query": {
        args: { topic: "fermatas" },
        content: /^# Research Report: fermatas/,
      },
      "toggle-simulated-logging": { content: /^Started simulated/ },
      "toggle-subscriber-updates": { content: /^Started simulated/ },
      "trigger-long-running-operation": {
        args: { duration: 0.4, steps: 4 },
        content: /^Long running operation completed. Duration: 0.4 seconds, Steps: 4/,
      },
    });
  });

  test("server-filesystem", { timeout: 120_000 }, async () => {
    const host = await startHost(bridged("filesystem", [filesystem, folder], transport));
    const name = `notes-${transport}.txt`;
    const notes = file(name);
    mkdirSync(file(transport));
    writeFileSync(file("dot.png"), png);
    await callAll("filesystem", transport, host, {
      write_file: { args: { path: notes, content: "one\ntwo\n" }, content: /^Successfully wrote/ },
      edit_file: {
        args: { path: notes, edits: [{ oldText: "two", newText: "three" }] },
        content: /\+three/,
      },
      read_text_file: { args: { path: notes }, content: "one\nthree\n", citations: [notes] },
      read_file: { args: { path: notes }, content: "one\nthree\n", citations: [notes] },
      read_media_file: {
        args: { path: file("dot.png") },
        content: `[image not shown: image/png, ${png.length} bytes]`,
        citations: [file("dot.png")],
      },
      read_multiple_files: {
        args: { paths: [notes, file("dot.png")] },
        content: /three/,
        citations: [notes, file("dot.png")],
      },
      create_directory: {
        args: { path: file(`${transport}/new`) },
        content: /^Successfully created/,
      },
      move_file: {
        args: { source: notes, destination: file(`${transport}/${name}`) },
        content: /^Successfully moved/,
      },
      list_directory: {
        args: { path: file(transport) },
        content: `[DIR] new\n[FILE] ${name}`,
      },
      list_directory_with_sizes: { args: { path: file(transport) }, content: /Total: 1 files/ },
      directory_tree: { args: { path: file(transport) }, content: /"name": "new"/ },
      search_files: {
        args: { path: folder, pattern: `**/${name}` },
        content: file(`${transport}/${name}`),
      },
      get_file_info: {
        args: { path: file(`${transport}/${name}`) },
        content: /size: 10/,
        citations: [file(`${transport}/${name}`)],
      },
      list_allowed_directories: { content: `Allowed directories:\n${folder}` },
    });
    // What it annotates is known.
    const readOnly = host.tools().filter((tool) => tool.readOnly === true);
    expect(readOnly.map(({ originalName }) => originalName)).not.toContain("write_file");
    expect(readOnly.length).toBe(10);
    // An error of the tool is an error of the call.
    const { result } = await call(host.tools(), "read_text_file", { path: "/etc/passwd" });
    expect(result).toMatchObject({
      isError: true,
      content: expect.stringContaining("Access denied"),
    });
    expect(result.citations).toBeUndefined();
  });
});

test.each(transports)("a change of the list is heard over %s", async (transport) => {
  const host = await startHost(bridged("growing", [fixture, "grow"], transport));
  const names = (): string[] => host.tools().map(({ definition }) => definition.name);
  expect(names()).toEqual(["grow"]);
  await call(host.tools(), "grow", {});
  await eventually(() => expect(names()).toEqual(["grow", "grown"]));
});

test("the docs show what was called", async () => {
  const rows = [...table]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([row, cells]) =>
        `| ${row} | ${transports.map((transport) => cells.get(transport) ?? "-").join(" | ")} |`,
    );
  const head = "| server | tool | stdio | Streamable HTTP | SSE |\n| --- | --- | --- | --- | --- |";
  const marks = /(<!-- reference servers -->\n)[^]*(<!-- end -->)/;
  const text = readFileSync(docs, "utf8").replace(marks, `$1${head}\n${rows.join("\n")}\n$2`);
  await expect(text).toMatchFileSnapshot(fileURLToPath(docs));
});
