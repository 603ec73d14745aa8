import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { serveConfig } from "../../support/serve-config.ts";

const empty = mkdtempSync(join(tmpdir(), "fermata-"));

function load(args: string[], env: NodeJS.ProcessEnv = {}, cwd = empty) {
  return serveConfig(args, env, cwd);
}

function directoryWith(files: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), "fermata-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  return directory;
}

test("defaults", () => {
  expect(load([])).toEqual({
    model: undefined,
    hf: undefined,
    file: undefined,
    modelsDir: undefined,
    alias: [],
    chatTemplate: undefined,
    chatTemplateFile: undefined,
    nPredict: -1,
    pooling: undefined,
    toolFormat: "auto",
    reasoning: "auto",
    host: "127.0.0.1",
    port: 8000,
    apiKey: [],
    corsOrigin: [],
    drainSeconds: 5,
    supervise: true,
    uiServer: true,
    store: undefined,
    storeDays: 30,
    storeResponses: 10_000,
    storeMegabytes: 1024,
    responsesEvents: "standard",
    responsesTools: "close",
    responsesToolTimeout: 300,
    maxToolOutputBytes: 1_048_576,
    ctxSize: undefined,
    parallel: 4,
    retainedSlots: undefined,
    deterministic: false,
    contextCache: true,
    stopRepetition: true,
    threads: undefined,
    nGpuLayers: 0,
    flashAttn: "auto",
    cacheTypeK: undefined,
    cacheTypeV: undefined,
    kvLayout: "auto",
    mcpConfig: undefined,
    agents: undefined,
    mcpCommand: undefined,
    mcpArgs: [],
    mcpToolRefreshSeconds: 30,
    toolTimeout: 60,
    toolTotalTimeout: 600,
    maxToolRounds: 16,
    maxToolCalls: 128,
    maxToolSeconds: 1800,
    approvalTimeout: 300,
    allowRequestMcp: false,
    auditLog: undefined,
    logLevel: "info",
    audit: false,
  });
});

test("flags in every form", () => {
  const args = [
    "--w",
    "m.gguf",
    "--port=9",
    "--no-context-cache",
    "--audit",
    "--api-key",
    "a",
    "--api-key=b",
    "--n-gpu-layers",
    "-1",
  ];
  expect(load(args)).toMatchObject({
    model: join(empty, "m.gguf"),
    port: 9,
    contextCache: false,
    audit: true,
    apiKey: ["a", "b"],
    nGpuLayers: -1,
  });
  expect(load(["--context-cache=false"]).contextCache).toBe(false);
});

test("arguments of the MCP server may begin with dashes", () => {
  const { mcpArgs } = load(["--mcp-command", "server", "--mcp-args=--arg1,arg2"]);
  expect(mcpArgs).toEqual(["--arg1", "arg2"]);
});

test("flags, then the environment, then the file", () => {
  const cwd = directoryWith({
    "fermata.json": '{"port": 1, "parallel": 2, "ctxSize": 3000, "apiKey": ["f"]}',
  });
  const env = {
    FERMATA_PORT: "10",
    FERMATA_PARALLEL: "20",
    FERMATA_AUDIT: "true",
    FERMATA_THREADS: "",
  };
  expect(load(["--port", "100"], env, cwd)).toMatchObject({
    port: 100,
    parallel: 20,
    ctxSize: 3000,
    apiKey: ["f"],
    audit: true,
  });
});

describe("a chat template", () => {
  const jinja = "{{ messages[0].content }}";
  const cwd = directoryWith({
    "template.jinja": jinja,
    "broken.jinja": "{% if %}",
    "list.txt": "milk",
    "fermata.json": '{"chatTemplateFile": "template.jinja"}',
  });

  test("is Jinja text, one that has a name, or a file's", () => {
    expect(load(["--chat-template", jinja]).chatTemplate).toBe(jinja);
    expect(load(["--chat-template-file", "template.jinja"], {}, cwd).chatTemplate).toBe(jinja);
    expect(load(["--chat-template", "chatml"]).chatTemplate).toContain("<|im_start|>");
    expect(load(["--chat-template", "gemma"]).chatTemplate).toContain("<start_of_turn>");
    expect(load([], {}, cwd).chatTemplate).toBe(jinja);
    expect(load(["--chat-template", "chatml"], {}, cwd).chatTemplate).toContain("<|im_start|>");
  });

  test.each([
    [["--chat-template", "llama9"], /one of chatml, gemma/],
    [["--chat-template", "{{ oops"], /--chat-template is not valid Jinja/],
    [["--chat-template-file", "none.jinja"], /none\.jinja cannot be read/],
    [["--chat-template-file", "broken.jinja"], /broken\.jinja is not valid Jinja/],
    [["--chat-template-file", "list.txt"], /list\.txt has no .* so it is no template/],
    [["--chat-template-file", "template.jinja", "--chat-template", "chatml"], /exclude each other/],
  ])("%j is refused", (args, message) => {
    expect(() => load(args, {}, cwd)).toThrow(
      expect.objectContaining({
        code: "invalid_option",
        message: expect.stringMatching(message) as string,
      }),
    );
  });
});

describe("--cors-origin", () => {
  test.each([
    "*",
    "null",
    "http://localhost:3000",
    "https://app.example",
    "http://[::1]:8080",
    "chrome-extension://abcdef",
  ])("takes %s", (origin) => {
    expect(load(["--cors-origin", origin]).corsOrigin).toEqual([origin]);
  });

  test.each([
    ["localhost", "http://localhost;"],
    ["localhost:3000", "http://localhost:3000;"],
    ["https://app.example/", "https://app.example;"],
    ["https://App.example", "https://app.example;"],
    ["http://localhost:80", "http://localhost;"],
    ["https://app.example/page?x", "https://app.example;"],
    ["https://a.example, https://b.example", "cors-origin"],
    ["", "is no origin"],
  ])("refuses %j, and names what is meant", (origin, remedy) => {
    const cwd = directoryWith({ "fermata.json": JSON.stringify({ corsOrigin: [origin] }) });
    expect(() => load([], {}, cwd)).toThrow(remedy);
    expect(() => load([], {}, cwd)).toThrow(
      expect.objectContaining({ code: "invalid_option", param: "cors-origin" }),
    );
  });
});

test("names of the model, tokens of an answer, pooling", () => {
  expect(load(["--alias", "a,b", "--alias=c"]).alias).toEqual(["a", "b", "c"]);
  expect(() => load(["--alias", "a,,b"])).toThrow("--alias holds an empty name");
  expect(load(["--predict", "5"]).nPredict).toBe(5);
  expect(() => load(["--n-predict", "0"])).toThrow("at least 1, or -1");
  expect(load(["--pooling", "mean", "--embedding-model", "e.gguf"]).pooling).toBe("mean");
  expect(() => load(["--pooling", "mean"])).toThrow("--pooling needs --embedding-model");
});

test.each([
  ["DEBUG", "debug"],
  ["WARNING", "warn"],
  ["Warning", "warn"],
  ["warn", "warn"],
  ["CRITICAL", "fatal"],
  ["FATAL", "fatal"],
  ["NOTSET", "trace"],
])("LOGLEVEL=%s, as other servers take it", (word, level) => {
  expect(load([], { LOGLEVEL: word }).logLevel).toBe(level);
  expect(load(["--log-level", word]).logLevel).toBe(level);
  expect(load([], { LOGLEVEL: "DEBUG", FERMATA_LOG_LEVEL: "warn" }).logLevel).toBe("warn");
});

test("keys from a file", () => {
  const cwd = directoryWith({ "keys.txt": "# team\none\n\n two \n", "empty.txt": "\n" });
  expect(load(["--api-key", "@keys.txt"], {}, cwd).apiKey).toEqual(["one", "two"]);
  expect(() => load(["--api-key", "@empty.txt"], {}, cwd)).toThrow("holds no key");
});

describe("a mistake is one line that names what is valid", () => {
  test.each([
    [["--modle", "x"], "Unknown option --modle. Did you mean --model?"],
    [["--ctx_size=5"], "Did you mean --ctx-size?"],
    [["model.gguf"], "Unexpected argument model.gguf."],
    [["--port"], "--port needs a value."],
    [["--port", "--audit"], "--port needs a value. If --audit is it, write --port=--audit."],
    [["--port", "http"], '--port needs a whole number, not "http".'],
    [["--port", "70000"], "--port must be from 0 to 65535, not 70000."],
    [
      ["--kv-layout", "stream"],
      'must be one of streams, unified, auto, not "stream". Did you mean streams?',
    ],
    [["--audit=maybe"], '--audit needs true or false, not "maybe".'],
    [["--host="], "--host needs a value."],
    [["--mcp-args=a"], "--mcp-args needs --mcp-command."],
    [["--mcp-config", "a", "--mcp-command", "b"], "exclude each other"],
    [["--api-key", "@nowhere"], "cannot be read"],
  ])("%j", (args, message) => {
    expect(() => load(args)).toThrow(
      expect.objectContaining({
        code: "invalid_option",
        message: expect.stringContaining(message),
      }),
    );
  });

  test.each([
    ['{"prot": 1}', 'has the unknown key "prot". Did you mean port?'],
    ['{"port": "1"}', 'fermata.json: "port" needs a whole number.'],
    ['{"audit": 1}', 'fermata.json: "audit" needs true or false.'],
    ["[]", "must hold a JSON object"],
    ["{", "is not valid JSON"],
  ])("fermata.json %s", (text, message) => {
    expect(() => load([], {}, directoryWith({ "fermata.json": text }))).toThrow(message);
  });

  test("a variable is named as it is spelled", () => {
    expect(() => load([], { FERMATA_PORT: "x" })).toThrow("FERMATA_PORT needs a whole number");
  });
});

test("an agents file, by flag, variable and key", () => {
  const path = join(empty, "agents.json");
  expect(load(["--agents", "agents.json"]).agents).toBe(path);
  expect(load([], { FERMATA_AGENTS: "agents.json" }).agents).toBe(path);
  const cwd = directoryWith({ "fermata.json": '{"agents": "team.json"}' });
  expect(load([], {}, cwd).agents).toBe(join(cwd, "team.json"));
});
