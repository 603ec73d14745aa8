import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  checkAgentServers,
  parseAgentsConfig,
  readAgentsConfig,
} from "../../../src/agents/agents-config.ts";
import { FermataError } from "../../../src/errors.ts";

const path = "/etc/agents.json";
const env = { KEY: "secret", EMPTY: "" };

const whole = {
  supervisor: "boss",
  instructions: "Be brief.",
  agents: {
    boss: { description: "Plans", instructions: "Delegate." },
    reader: {
      description: "Reads files",
      tools: { files: ["read_file"], web: "*" },
      agents: ["far"],
      limits: { rounds: 2, calls: 3, tokens: 400, seconds: 5, depth: 1 },
      sampling: { temperature: 0.5, top_p: 0.9, top_k: 4, seed: 7 },
      model: "small.gguf",
    },
    far: {
      description: "Elsewhere",
      endpoint: {
        url: "https://api.example.com/v1/",
        model: "large",
        api_key_env: "KEY",
        timeout_seconds: 9,
        context_size: 4096,
      },
    },
  },
};

const parse = (json: unknown) => parseAgentsConfig(json, path, env);

/** `whole` with one agent's keys replaced. */
function withReader(keys: object): unknown {
  return { ...whole, agents: { ...whole.agents, reader: { description: "Reads", ...keys } } };
}

function withEndpoint(keys: object): unknown {
  const endpoint = { url: "http://localhost:1", model: "m", ...keys };
  return withReader({ endpoint });
}

test("every key, and what stands in for those that are left out", () => {
  const { supervisor, agents } = parse(whole);
  expect(supervisor).toBe("boss");
  expect([...agents.keys()]).toEqual(["boss", "reader", "far"]);
  expect(agents.get("boss")).toEqual({
    name: "boss",
    description: "Plans",
    instructions: "Be brief.\n\nDelegate.",
    tools: new Map(),
    // The supervisor has all others, unless it says which.
    delegates: ["reader", "far"],
    limits: { rounds: undefined, calls: 100, tokens: undefined, seconds: 600, depth: 3 },
    sampling: {},
    source: { kind: "served" },
  });
  expect(agents.get("reader")).toEqual({
    name: "reader",
    description: "Reads files",
    instructions: "Be brief.",
    tools: new Map<string, unknown>([
      ["files", new Set(["read_file"])],
      ["web", "*"],
    ]),
    delegates: ["far"],
    limits: { rounds: 2, calls: 3, tokens: 400, seconds: 5, depth: 1 },
    sampling: { temperature: 0.5, topP: 0.9, topK: 4, seed: 7 },
    source: { kind: "file", path: "/etc/small.gguf" },
  });
  expect(agents.get("far")?.delegates).toEqual([]);
  expect(agents.get("far")?.source).toEqual({
    kind: "endpoint",
    endpoint: {
      url: "https://api.example.com/v1",
      model: "large",
      apiKey: "secret",
      timeoutMs: 9000,
      contextSize: 4096,
    },
  });
});

describe("what is wrong is named by file and key", () => {
  const cases: [json: unknown, key: string | null, problem: string][] = [
    [[], null, "must be an object"],
    [{ ...whole, agent: {} }, "agent", 'is not known; did you mean "agents"?'],
    [{ ...whole, supervisor: "chief" }, "supervisor", 'names no agent: "chief"; there are boss'],
    [{ agents: whole.agents }, "supervisor", 'is missing; add "supervisor": "boss"'],
    [{ supervisor: "boss" }, "agents", "has no agent"],
    [{ ...whole, agents: [] }, "agents", "must be an object"],
    [{ supervisor: "a b", agents: { "a b": {} } }, "agents.a b", "has an illegal name"],
    [{ ...whole, agents: { ...whole.agents, reader: {} } }, "agents.reader.description", "missing"],
    [withReader({ tool: {} }), "agents.reader.tool", 'did you mean "tools"?'],
    [
      withReader({ description: 3 }),
      "agents.reader.description",
      "must be a string that is not empty",
    ],
    [
      withReader({ instructions: [] }),
      "agents.reader.instructions",
      "must be a string that is not empty",
    ],
    [withReader({ tools: { files: "all" } }), "agents.reader.tools.files", 'must be "*" or an arr'],
    [withReader({ tools: { files: [1] } }), "agents.reader.tools.files[0]", "must be a string"],
    [withReader({ tools: "*" }), "agents.reader.tools", "must be an object"],
    [withReader({ agents: ["nobody"] }), "agents.reader.agents", 'names no other agent: "nobody"'],
    [withReader({ agents: ["reader"] }), "agents.reader.agents", 'names no other agent: "reader"'],
    [withReader({ limits: { round: 1 } }), "agents.reader.limits.round", 'mean "rounds"?'],
    [withReader({ limits: { rounds: 0 } }), "agents.reader.limits.rounds", "from 1 to 1000"],
    [withReader({ limits: { tokens: 1.5 } }), "agents.reader.limits.tokens", "a whole number"],
    [withReader({ limits: { seconds: "9" } }), "agents.reader.limits.seconds", "a whole number"],
    [withReader({ limits: { depth: 17 } }), "agents.reader.limits.depth", "from 0 to 16"],
    [withReader({ sampling: { temperature: 3 } }), "agents.reader.sampling.temperature", "0 to 2"],
    [withReader({ sampling: { top_k: 1.5 } }), "agents.reader.sampling.top_k", "a whole number"],
    [withReader({ sampling: { heat: 1 } }), "agents.reader.sampling.heat", "is not known"],
    [withReader({ model: "" }), "agents.reader.model", "must be a string that is not empty"],
    [withReader({ model: "a", endpoint: {} }), "agents.reader.endpoint", "excludes model"],
    [withEndpoint({ url: "api" }), "agents.reader.endpoint.url", "must be an address"],
    [withEndpoint({ url: "ftp://a" }), "agents.reader.endpoint.url", "must be an address"],
    [withEndpoint({ url: "http://u:p@a" }), "agents.reader.endpoint.url", "must not hold a key"],
    [withEndpoint({ model: undefined }), "agents.reader.endpoint.model", "is missing"],
    [withEndpoint({ api_key: "k" }), "agents.reader.endpoint.api_key", "is not known"],
    [withEndpoint({ api_key_env: "NO" }), "agents.reader.endpoint.api_key_env", "NO, which is not"],
    [withEndpoint({ api_key_env: "EMPTY" }), "agents.reader.endpoint.api_key_env", "is not set"],
  ];
  test.each(cases)("%j", (json, key, problem) => {
    const error = thrownBy(() => parse(json));
    expect(error.code).toBe("agents_invalid");
    expect(error.param).toBe(key);
    expect(error.message).toContain(key === null ? path : `${path}: "${key}"`);
    expect(error.message).toContain(problem);
    expect(error.message).not.toContain("secret");
  });
});

test("a file that is not there, and one that is no JSON", () => {
  const folder = mkdtempSync(join(tmpdir(), "fermata-agents-"));
  const missing = thrownBy(() => readAgentsConfig(join(folder, "none.json"), env));
  expect(missing.message).toContain("none.json does not exist");
  writeFileSync(join(folder, "agents.json"), "{");
  const broken = thrownBy(() => readAgentsConfig(join(folder, "agents.json"), env));
  expect(broken.message).toContain("agents.json is not valid JSON: Expected property name");
  expect(broken.message).toContain("at line 1, column 2");
});

test("too many models, too many agents", () => {
  const many = (count: number, keys: (index: number) => object) => ({
    supervisor: "a0",
    agents: Object.fromEntries(
      Array.from({ length: count }, (_, i) => [`a${i}`, { description: "x", ...keys(i) }]),
    ),
  });
  expect(thrownBy(() => parse(many(5, (i) => ({ model: `${i}.gguf` })))).message).toContain(
    "has 5 models. At most 4 are allowed",
  );
  expect(parse(many(5, () => ({ model: "same.gguf" }))).agents.size).toBe(5);
  expect(thrownBy(() => parse(many(65, () => ({})))).message).toContain("At most 64 are allowed");
});

test("servers that are not configured, and one that has delegation's name", () => {
  const config = parse(whole);
  const error = thrownBy(() => checkAgentServers(config, path, ["files"]));
  expect(error.message).toContain('"agents.reader.tools.web" names no MCP server');
  expect(error.message).toContain("(files)");
  const reserved = thrownBy(() => checkAgentServers(config, path, ["files", "web", "agent"]));
  expect(reserved.message).toContain('needs the name "agent" for delegation');
  checkAgentServers(config, path, ["files", "web"]);
});

function thrownBy(run: () => unknown): FermataError {
  try {
    run();
  } catch (error) {
    if (error instanceof FermataError) return error;
  }
  throw new Error("nothing was thrown");
}
