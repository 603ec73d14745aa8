import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { commands } from "../../../src/cli/commands/commands.ts";
import { flagNames } from "../../../src/cli/options/option-table.ts";
import { directoryWith, emptyFolder, serveConfig } from "../../support/serve-config.ts";

test("defaults", () => {
  expect(serveConfig([])).toEqual({
    model: undefined,
    processTimeout: { drain: 5, notice: 0, loop: 60, step: 600 },
    hf: undefined,
    file: undefined,
    modelsDir: undefined,
    rerankModel: undefined,
    modelsMax: 4,
    keepAlive: -1,
    alias: [],
    chatTemplate: undefined,
    nPredict: -1,
    pooling: undefined,
    toolFormat: "auto",
    reasoning: "auto",
    config: undefined,
    host: "127.0.0.1",
    port: 8000,
    apiKey: [],
    apiKeysFile: undefined,
    auth: true,
    corsOrigin: [],
    supervise: true,
    uiServer: true,
    replica: undefined,
    store: undefined,
    storeOptional: false,
    storeLimits: { days: 30, responses: 10_000, megabytes: 1024 },
    responsesEvents: "standard",
    responsesTools: "close",
    maxBody: 4,
    maxToolOutputBytes: 1_048_576,
    ctxSize: undefined,
    parallel: 4,
    retainedSlots: undefined,
    cacheRam: undefined,
    cacheDisk: 0,
    cacheDir: undefined,
    cacheRemote: undefined,
    deterministic: false,
    drafts: undefined,
    draftModel: undefined,
    draftMtp: false,
    targetItlMs: undefined,
    contextCache: true,
    shareCache: false,
    stopRepetition: true,
    threads: undefined,
    nGpuLayers: undefined,
    flashAttn: "auto",
    cacheTypeK: undefined,
    cacheTypeV: undefined,
    kvLayout: "auto",
    device: [],
    splitMode: undefined,
    rpc: [],
    tensorSplit: [],
    mainGpu: undefined,
    overrideTensor: [],
    cpuMoe: false,
    nCpuMoe: undefined,
    mmap: true,
    mlock: false,
    batchSize: undefined,
    ubatchSize: undefined,
    ropeScaling: undefined,
    ropeScale: undefined,
    ropeFreqBase: undefined,
    ropeFreqScale: undefined,
    yarnOrigCtx: undefined,
    yarnExtFactor: undefined,
    yarnAttnFactor: undefined,
    yarnBetaFast: undefined,
    yarnBetaSlow: undefined,
    mcpConfig: undefined,
    agents: undefined,
    mcpCommand: undefined,
    mcpArgs: [],
    mcpToolRefreshSeconds: 30,
    toolTimeout: { silence: 60, call: 600, answer: 1800, approval: 300, output: 300 },
    maxToolRounds: 16,
    allowRequestMcp: false,
    approval: "ask",
    auditLog: undefined,
    logLevel: "info",
    audit: false,
  });
});

test("flags in every form", () => {
  const args = [
    "-m",
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
  expect(serveConfig(args)).toMatchObject({
    model: join(emptyFolder, "m.gguf"),
    port: 9,
    contextCache: false,
    audit: true,
    apiKey: ["a", "b"],
    nGpuLayers: -1,
  });
  expect(serveConfig(["--context-cache=false"]).contextCache).toBe(false);
});

test("arguments of the MCP server may begin with dashes", () => {
  const { mcpArgs } = serveConfig(["--mcp-command", "server", "--mcp-args=--arg1,arg2"]);
  expect(mcpArgs).toEqual(["--arg1", "arg2"]);
});

test("flags, then the environment, then the file", () => {
  const cwd = directoryWith({
    "fermata.json": '{"port": 1, "parallel": 2, "ctxSize": 3000, "toolTimeout": {"call": 90}}',
  });
  const env = {
    FERMATA_PORT: "10",
    FERMATA_PARALLEL: "20",
    FERMATA_AUDIT: "true",
    FERMATA_THREADS: "",
  };
  expect(serveConfig(["--port", "100"], env, cwd)).toMatchObject({
    port: 100,
    parallel: 20,
    ctxSize: 3000,
    toolTimeout: { silence: 60, call: 90 },
    audit: true,
  });
});

test("FERMATA_PORT of a Kubernetes Service named fermata is no port", () => {
  const env = { FERMATA_PORT: "tcp://10.43.7.1:80", FERMATA_PORT_80_TCP_PORT: "80" };
  expect(serveConfig([], env).port).toBe(serveConfig([]).port);
  const cwd = directoryWith({ "fermata.json": '{"port": 7000}' });
  expect(serveConfig([], env, cwd).port).toBe(7000);
});

describe("a chat template", () => {
  const jinja = "{{ messages[0].content }}";
  const cwd = directoryWith({
    "template.jinja": jinja,
    "broken.jinja": "{% if %}",
    "list.txt": "milk",
    "options.json": '{"chatTemplate": "template.jinja"}',
  });

  test("is Jinja text, one that has a name, or a file's", () => {
    expect(serveConfig(["--chat-template", jinja]).chatTemplate).toBe(jinja);
    expect(serveConfig(["--chat-template-file", "template.jinja"], {}, cwd).chatTemplate).toBe(
      jinja,
    );
    expect(serveConfig(["--chat-template", "chatml"]).chatTemplate).toContain("<|im_start|>");
    expect(serveConfig(["--chat-template", "gemma"]).chatTemplate).toContain("<start_of_turn>");
    expect(serveConfig(["--chat-template", "template.jinja"], {}, cwd).chatTemplate).toBe(jinja);
    expect(serveConfig(["--config", join(cwd, "options.json")]).chatTemplate).toBe(jinja);
    expect(
      serveConfig(["--chat-template", "chatml", "--config", "options.json"], {}, cwd).chatTemplate,
    ).toContain("<|im_start|>");
  });

  test.each([
    [["--chat-template", "llama9"], /one of chatml, gemma/],
    [["--chat-template", "{{ oops"], /--chat-template is not valid Jinja/],
    [["--chat-template", "{% if a %}b"], /is not valid Jinja: Unexpected end of input\./],
    [["--chat-template-file", "none.jinja"], /none\.jinja cannot be read/],
    [["--chat-template-file", "broken.jinja"], /broken\.jinja is not valid Jinja/],
    [["--chat-template-file", "list.txt"], /list\.txt has no .* so it is not a template/],
  ])("%j is refused", (args, message) => {
    expect(() => serveConfig(args, {}, cwd)).toThrow(
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
    expect(serveConfig(["--cors-origin", origin]).corsOrigin).toEqual([origin]);
  });

  test.each([
    ["localhost", "http://localhost;"],
    ["localhost:3000", "http://localhost:3000;"],
    ["https://app.example/", "https://app.example;"],
    ["https://App.example", "https://app.example;"],
    ["http://localhost:80", "http://localhost;"],
    ["https://app.example/page?x", "https://app.example;"],
    ["https://a.example, https://b.example", "cors-origin"],
    ["", "is not an origin"],
  ])("refuses %j, and names what is meant", (origin, remedy) => {
    const cwd = directoryWith({ "fermata.json": JSON.stringify({ corsOrigin: [origin] }) });
    expect(() => serveConfig(["--config=fermata.json"], {}, cwd)).toThrow(remedy);
    expect(() => serveConfig(["--config=fermata.json"], {}, cwd)).toThrow(
      expect.objectContaining({ code: "invalid_option", param: "cors-origin" }),
    );
  });
});

test("--replica takes what a server of a proxy may be called", () => {
  for (const name of ["a", "r1", "fermata-0", "a".repeat(63)])
    expect(serveConfig(["--replica", name]).replica).toBe(name);
  for (const name of ["R1", "r.1", "-r", "r-", "r_1", "r 1", "a".repeat(64)])
    expect(() => serveConfig(["--replica", name])).toThrow(
      expect.objectContaining({ code: "invalid_option", param: "replica" }),
    );
});

test("names of the model, tokens of an answer, pooling", () => {
  expect(serveConfig(["--alias", "a,b", "--alias=c"]).alias).toEqual(["a", "b", "c"]);
  expect(() => serveConfig(["--alias", "a,,b"])).toThrow("--alias holds an empty name");
  expect(serveConfig(["--predict", "5"]).nPredict).toBe(5);
  expect(() => serveConfig(["--n-predict", "0"])).toThrow("at least 1, or -1");
  expect(serveConfig(["--pooling", "mean", "--embedding-model", "e.gguf"]).pooling).toBe("mean");
  expect(() => serveConfig(["--pooling", "mean"])).toThrow("--pooling needs --embedding-model");
  expect(() => serveConfig(["--keep-alive", "9"])).toThrow("--keep-alive needs --models-dir");
  expect(() => serveConfig(["--deterministic", "--drafts"])).toThrow("exclude each other");
  const draftModel = ["--draft-model", "small.gguf"];
  expect(serveConfig(["-md", "small.gguf"]).draftModel).toBe(serveConfig(draftModel).draftModel);
  expect(() => serveConfig(["--deterministic", ...draftModel])).toThrow("exclude each other");
  expect(() => serveConfig(["--no-drafts", ...draftModel])).toThrow("exclude each other");
  expect([serveConfig(["--drafts"]).drafts, serveConfig(["--no-drafts"]).drafts]).toEqual([
    true,
    false,
  ]);
  expect(() => serveConfig(["--models-dir", "m", ...draftModel])).toThrow("needs a single model");
  expect(serveConfig(["--draft-mtp"]).draftMtp).toBe(true);
  expect(() => serveConfig(["--draft-mtp", "--deterministic"])).toThrow("exclude each other");
  expect(() => serveConfig(["--draft-mtp", ...draftModel])).toThrow("exclude each other");
  expect(() => serveConfig(["--draft-mtp", "--models-dir", "m"])).toThrow("needs a single model");
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
  expect(serveConfig([], { LOGLEVEL: word }).logLevel).toBe(level);
  expect(serveConfig(["--log-level", word]).logLevel).toBe(level);
  expect(serveConfig([], { LOGLEVEL: "DEBUG", FERMATA_LOG_LEVEL: "warn" }).logLevel).toBe("warn");
});

test("keys from a file", () => {
  const cwd = directoryWith({ "keys.txt": "# team\none\n\n two \n", "empty.txt": "\n" });
  expect(serveConfig(["--api-key", "@keys.txt"], {}, cwd).apiKey).toEqual(["one", "two"]);
  expect(() => serveConfig(["--api-key", "@empty.txt"], {}, cwd)).toThrow("holds no key");
});

test("llama-server's short names", () => {
  const args =
    "-m m.gguf -c 4096 -np 2 -n 9 -t 3 -ngl 99 -fa on -ctk q8_0 -ctv q8_0 -a one,two -cmoe";
  expect(serveConfig([...args.split(" "), "-b", "64"])).toMatchObject({
    model: join(emptyFolder, "m.gguf"),
    ctxSize: 4096,
    parallel: 2,
    nPredict: 9,
    threads: 3,
    nGpuLayers: 99,
    flashAttn: "on",
    cacheTypeK: "q8_0",
    cacheTypeV: "q8_0",
    alias: ["one", "two"],
    cpuMoe: true,
    batchSize: 64,
  });
  for (const { options } of commands) {
    const names = Object.entries(options).flatMap(([key, spec]) => flagNames(key, spec));
    expect(new Set(names).size).toBe(names.length);
  }
});

describe("a mistake is one line that names what is valid", () => {
  test.each([
    [["--modle", "x"], "Unknown option --modle. Did you mean --model?"],
    [["--ctx_size=5"], "Did you mean --ctx-size?"],
    [["-x", "5"], 'Unknown option -x. "fermata serve --help" lists all.'],
    [["--jinja"], "--jinja is an option of llama-server: it is always on, leave it out."],
    [
      ["--spec-type=x"],
      "--spec-type is an option of llama-server: use --drafts, with --draft-model FILE",
    ],
    [["--embeddings"], "give the model as --embedding-model FILE"],
    [["-m"], "-m needs a value."],
    [["model.gguf"], "Unexpected argument model.gguf."],
    [["--port"], "--port needs a value."],
    [["--port", "--audit"], "--port needs a value. If the value is --audit, write --port=--audit."],
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
    expect(() => serveConfig(args)).toThrow(
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
    expect(() => serveConfig([], {}, directoryWith({ "fermata.json": text }))).toThrow(message);
  });

  test("a variable is named as it is spelled", () => {
    expect(() => serveConfig([], { FERMATA_PORT: "x" })).toThrow(
      "FERMATA_PORT needs a whole number",
    );
  });
});

test("an agents file, by flag, variable and key", () => {
  const path = join(emptyFolder, "agents.json");
  expect(serveConfig(["--agents", "agents.json"]).agents).toBe(path);
  expect(serveConfig([], { FERMATA_AGENTS: "agents.json" }).agents).toBe(path);
  const cwd = directoryWith({ "fermata.json": '{"agents": "team.json"}' });
  expect(serveConfig(["--config", "fermata.json"], {}, cwd).agents).toBe(join(cwd, "team.json"));
});
