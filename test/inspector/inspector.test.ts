// The MCP inspector's command line against `fermata mcp` and /mcp.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ServedCommand, serveCommand } from "../support/command-line.ts";
import { newerNode } from "./newer-node.ts";

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
const launcher = path(
  "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
);
const key = "a-key-for-this-test";
const agents = {
  supervisor: "writer",
  agents: { writer: { description: "Writes poems.", instructions: "You write poems." } },
};

let folder = "";
let server: ServedCommand;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fermata-inspector-"));
  await writeFile(join(folder, "agents.json"), JSON.stringify(agents));
  server = await serveCommand("--agents", join(folder, "agents.json"), "--api-key", key);
  const stdio = {
    command: process.execPath,
    args: [path("../../dist/cli/main.js"), "mcp", "--url", server.url, "--api-key", key],
  };
  const http = { type: "streamable-http", url: `${server.url}/mcp`, headers: { "x-api-key": key } };
  const wrong = { ...http, headers: { "x-api-key": "wrong" } };
  const engine = {
    command: process.execPath,
    args: [path("../../dist/cli/main.js"), "mcp", "--ctx-size", "2048"],
  };
  const mcpServers = { stdio, http, wrong, engine };
  await writeFile(join(folder, "servers.json"), JSON.stringify({ mcpServers }));
});

afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

interface Inspected {
  code: number;
  /** What a program reads: `result` on standard output, `error` on the other. */
  out: { result?: Record<string, unknown> };
  error: { code?: string; message?: string };
}

function inspect(name: string, method: string, ...args: string[]): Promise<Inspected> {
  const command = [launcher, "--cli", "--config", join(folder, "servers.json"), "--server", name];
  const settings = ["--method", method, "--format", "json", "--quiet", "--stored-auth-only"];
  const env = { PATH: process.env["PATH"], HOME: folder, MCP_INSPECTOR_SECRET_STORE: "memory" };
  return new Promise((resolve) => {
    execFile(
      newerNode,
      [...command, ...settings, ...args],
      { env, cwd: folder },
      (failed, out, err) =>
        resolve({
          code: typeof failed?.code === "number" ? failed.code : 0,
          out: out === "" ? {} : (JSON.parse(out) as Inspected["out"]),
          error:
            failed === null ? {} : (JSON.parse(err.trim()) as { error: Inspected["error"] }).error,
        }),
    );
  });
}

const call = (name: string, tool: string, args: object): Promise<Inspected> =>
  inspect(name, "tools/call", "--tool-name", tool, "--tool-args-json", JSON.stringify(args));

describe.each(["stdio", "http"])("%s", (door) => {
  test("the agents and the model are tools whose schemas the inspector finds portable", async () => {
    const { code, out, error } = await inspect(door, "tools/list", "--strict");
    expect(error).toEqual({});
    // 6 would say that a schema is not portable.
    expect(code).toBe(0);
    const tools = out.result?.["tools"] as { name: string; description: string }[];
    expect(tools.map(({ name }) => name)).toEqual(["writer", "chat"]);
    expect(tools[0]).toMatchObject({
      description: "Writes poems.",
      inputSchema: { type: "object", required: ["prompt"] },
    });
  });

  test("a call answers as a chat completion does", async () => {
    const settings = { max_tokens: 12, temperature: 0 };
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": key },
      body: JSON.stringify({ messages: [{ role: "user", content: "Say hello." }], ...settings }),
    });
    const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
    const { code, out } = await call(door, "chat", { prompt: "Say hello.", ...settings });
    expect(code).toBe(0);
    const text = expect.stringContaining(choices[0]!.message.content);
    expect(out.result).toEqual({ content: [{ type: "text", text }], isError: false });
  });

  test("a bad call is an error of the tool, and an unknown tool is not called", async () => {
    const bad = await call(door, "chat", { prompt: 7 });
    expect(bad.out.result).toEqual({
      content: [{ type: "text", text: '"prompt" must be a string, not a number. Send a text.' }],
      isError: true,
    });
    expect(bad).toMatchObject({ code: 5, error: { code: "tool_is_error" } });
    const unknown = await call(door, "nobody", {});
    expect(unknown).toMatchObject({ code: 5, error: { code: "tool_not_found" } });
  });
});

test("a wrong key ends with what the server says", async () => {
  const { code, error } = await inspect("wrong", "tools/list");
  expect({ code, error }).toMatchObject({ code: 3, error: { code: "auth_required" } });
  expect(error.message).toContain("The API key is not known");
});

test("the command without a server loads the model in its own process", async () => {
  const { code, out } = await call("engine", "chat", { prompt: "Say hello.", max_tokens: 4 });
  expect(code).toBe(0);
  expect(out.result).toMatchObject({ isError: false, content: [{ type: "text" }] });
});
