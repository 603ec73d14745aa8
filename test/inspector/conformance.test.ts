// The MCP conformance suite: its servers against Fermata's client and logins, and its client against /mcp.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { questionContent, questionFields } from "../../src/client/index.ts";
import { parseMcpConfig } from "../../src/mcp/config.ts";
import { McpCredentials } from "../../src/mcp/login/credentials.ts";
import { McpHost } from "../../src/mcp/host.ts";
import { login } from "../../src/mcp/login/login.ts";
import type { PersonQuestion, Tool } from "../../src/tools/types.ts";
import { type ServedCommand, serveCommand } from "../support/command-line.ts";
import { eventually } from "../support/eventually.ts";
import { toolContext } from "../support/tool-context.ts";
import { newerNode } from "./newer-node.ts";

const suite = fileURLToPath(
  new URL("node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url),
);
const version = "0.0.0-test";
const silent = { debug() {}, info() {}, warn() {} };

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "fermata-conformance-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Check {
  id: string;
  status: "SUCCESS" | "FAILURE" | "WARNING" | "INFO";
  description: string;
  errorMessage?: string;
}

/** What the suite's server of a scenario finds wrong with what `use` does there. */
async function faultsOf(scenario: string, use: (url: string) => Promise<void>): Promise<string[]> {
  const args = [suite, "client", "--scenario", scenario, "--verbose"];
  const child = spawn(newerNode, args, { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "close");
  let out = "";
  child.stdout.on("data", (text) => (out += String(text)));
  try {
    const url = await eventually(() => {
      const found = /^Server URL: (\S+)$/m.exec(out)?.[1];
      expect(found).toBeDefined();
      return found!;
    });
    await use(url);
  } finally {
    child.kill("SIGINT");
    await ended;
  }
  const [, json = "[]"] = out.split("\nChecks:\n");
  const checks = JSON.parse(json) as Check[];
  expect(checks.map(({ status }) => status)).toContain("SUCCESS");
  return checks
    .filter(({ status }) => status === "FAILURE" || status === "WARNING")
    .map(({ id, description, errorMessage = description }) => `${id}: ${errorMessage}`);
}

/** Fermata with this one server in its mcp.json. */
class World {
  readonly host: McpHost;
  readonly #config;
  readonly #credentials;

  constructor(url: string, settings: object = {}) {
    this.#config = parseMcpConfig({ mcpServers: { it: { url, ...settings } } }, "mcp.json")[0]!;
    this.#credentials = new McpCredentials(join(folder, "credentials.json"));
    this.host = new McpHost([this.#config], {
      log: silent,
      version,
      credentials: this.#credentials,
      reconnectDelayMs: 50,
      maxReconnectDelayMs: 50,
      brokenDelayMs: 50,
    });
  }

  /** The person opens the page that is shown, and agrees. */
  async logIn(): Promise<void> {
    if (!("url" in this.#config)) throw new Error("There is nowhere to log in.");
    const open = (page: string): void => void fetch(page);
    const { signal } = new AbortController();
    await login(this.#config, this.#credentials, { version, open, signal });
  }

  async tool(): Promise<Tool> {
    return await eventually(() => {
      expect(this.host.servers()[0]).toMatchObject({ state: "ready", error: null });
      return this.host.tools()[0]!;
    });
  }
}

async function inWorld(
  url: string,
  use: (world: World) => Promise<void>,
  settings?: object,
): Promise<void> {
  const world = new World(url, settings);
  try {
    await use(world);
  } finally {
    await world.host.close();
  }
}

const callOf = async (world: World, args: object = {}): Promise<string> =>
  (await (await world.tool()).call(args, toolContext())).content;

describe("the client", () => {
  test("initialize", async () => {
    const use = (world: World): Promise<void> => world.host.start();
    expect(await faultsOf("initialize", (url) => inWorld(url, use))).toEqual([]);
  });

  test("tools_call", async () => {
    const use = async (world: World): Promise<void> => {
      await world.host.start();
      expect(await callOf(world, { a: 5, b: 3 })).toBe("The sum of 5 and 3 is 8");
    };
    expect(await faultsOf("tools_call", (url) => inWorld(url, use))).toEqual([]);
  });

  test("sse-retry", async () => {
    const use = async (world: World): Promise<void> => {
      await world.host.start();
      expect(await callOf(world)).toBe("Reconnection test completed successfully");
    };
    expect(await faultsOf("sse-retry", (url) => inWorld(url, use))).toEqual([]);
  });

  test("elicitation-sep1034-client-defaults", async () => {
    // As the page and the terminal do for a person who changes nothing.
    const ask = async ({ schema }: PersonQuestion) => {
      const fields = questionFields(schema);
      const initial = new Map(fields.map((field) => [field.name, field.initial]));
      const content = questionContent(fields, (name) => initial.get(name)!);
      return { action: "accept", content } as const;
    };
    const use = async (world: World): Promise<void> => {
      await world.host.start();
      await (await world.tool()).call({}, { ...toolContext(), ask });
    };
    const scenario = "elicitation-sep1034-client-defaults";
    expect(await faultsOf(scenario, (url) => inWorld(url, use))).toEqual([]);
  });
});

describe("logins", () => {
  const use = async (world: World): Promise<void> => {
    await world.host.start();
    expect(world.host.servers()[0]!.error).toContain("Run: fermata mcp login it");
    await world.logIn();
    expect(await callOf(world)).toBe("test");
  };

  test.each([
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
  ])("%s", async (scenario) => {
    expect(await faultsOf(scenario, (url) => inWorld(url, use))).toEqual([]);
  });

  test.each([
    ["auth/basic-cimd", { clientId: "https://conformance-test.local/client-metadata.json" }],
    [
      "auth/pre-registration",
      { clientId: "pre-registered-client", clientSecret: "pre-registered-secret" },
    ],
  ])("%s, with the client of the configuration", async (scenario, oauth) => {
    expect(await faultsOf(scenario, (url) => inWorld(url, use, { oauth }))).toEqual([]);
  });

  test("auth/scope-step-up: a call names the scope that it lacks, and the next login asks for it", async () => {
    const stepUp = async (world: World): Promise<void> => {
      await world.host.start();
      await world.logIn();
      expect(await callOf(world)).toContain('the scope "mcp:basic mcp:write"');
      await world.logIn();
      expect(await callOf(world)).toBe("test");
    };
    expect(await faultsOf("auth/scope-step-up", (url) => inWorld(url, stepUp))).toEqual([]);
  });

  test("auth/scope-retry-limit", async () => {
    const refused = async (world: World): Promise<void> => {
      await world.host.start();
      await world.logIn();
      await eventually(() => expect(world.host.servers()[0]!.error).toContain("mcp:admin"));
    };
    expect(await faultsOf("auth/scope-retry-limit", (url) => inWorld(url, refused))).toEqual([]);
  });

  test("auth/resource-mismatch", async () => {
    const refuse = async (world: World): Promise<void> =>
      expect(world.logIn()).rejects.toMatchObject({
        code: "mcp_login_failed",
        message: expect.stringContaining("evil.example.com"),
      });
    expect(await faultsOf("auth/resource-mismatch", (url) => inWorld(url, refuse))).toEqual([]);
  });
});

describe("the server", () => {
  let server: ServedCommand;
  beforeAll(async () => {
    server = await serveCommand();
  });
  afterAll(() => server.stop());

  test.each([
    "server-initialize",
    "ping",
    "tools-list",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
  ])("%s", async (scenario) => {
    const args = [suite, "server", "--url", `${server.url}/mcp`, "--scenario", scenario];
    const said = await new Promise<string>((resolve) => {
      execFile(newerNode, args, { cwd: folder }, (_failed, out, err) => resolve(out + err));
    });
    expect(said).toMatch(/Passed: [1-9]\d*\/\d+, 0 failed, 0 warnings/);
  });
});
