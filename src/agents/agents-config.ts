/** `agents.json`: which agents there are. */

import { dirname, resolve } from "node:path";
import { type ConfigKind, ConfigReader, readConfigFile } from "../config-reader.ts";
import { delegationServer } from "./delegation.ts";
import type { AgentLimits, AgentSampling } from "./types.ts";

export interface AgentConfig {
  name: string;
  description: string;
  /** The file's own instructions before the agent's. */
  instructions: string;
  /** By MCP server: all of its tools, or those that it knows by these names. */
  tools: ReadonlyMap<string, "*" | ReadonlySet<string>>;
  delegates: readonly string[];
  limits: AgentLimits;
  sampling: AgentSampling;
  source: ModelSource;
}

type ModelSource =
  /** The model that is served. */
  | { kind: "served" }
  | { kind: "file"; path: string }
  | { kind: "endpoint"; endpoint: EndpointConfig };

export interface EndpointConfig {
  /** Without the trailing `/chat/completions`. */
  url: string;
  /** What the endpoint calls the model. */
  model: string;
  /** Null: none is sent. */
  apiKey: string | null;
  /** Silence after which it is given up. */
  timeoutMs: number;
  contextSize: number;
}

export interface AgentsConfig {
  /** The agent that people talk to. */
  supervisor: string;
  /** In the file's order. */
  agents: ReadonlyMap<string, AgentConfig>;
}

const maxAgents = 64;
/** Each has an engine of its own. */
const maxModelFiles = 4;
const agentKeys = [
  "description",
  "instructions",
  "tools",
  "agents",
  "limits",
  "sampling",
  "model",
  "endpoint",
];
const legalName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

const kind: ConfigKind = { title: "Agents file ", code: "agents_invalid" };

/** @param env where keys of endpoints are @throws FermataError agents_invalid, naming the file and the key */
export function readAgentsConfig(path: string, env: NodeJS.ProcessEnv): AgentsConfig {
  return parseAgentsConfig(readConfigFile(kind, path).value, path, env);
}

/** @throws as `readAgentsConfig` */
export function parseAgentsConfig(
  json: unknown,
  path: string,
  env: NodeJS.ProcessEnv,
): AgentsConfig {
  const file = new ConfigReader(kind, path, json);
  file.knows(["supervisor", "instructions", "agents"]);
  const shared = file.text("instructions", "");
  const entries = file.at("agents").entries();
  if (entries.length === 0) throw file.at("agents").fails("has no agent");
  if (entries.length > maxAgents)
    throw file.at("agents").fails(`has ${entries.length} agents. At most ${maxAgents} are allowed`);
  const names = entries.map(([name]) => name);
  const supervisor = parseSupervisor(file, names);
  const context = { names, supervisor, shared, folder: dirname(path), env };
  const agents = entries.map(([name, entry]) => parseAgent(name, entry, context));
  const files = new Set(
    agents.flatMap(({ source }) => (source.kind === "file" ? source.path : [])),
  );
  if (files.size > maxModelFiles)
    throw file.at("agents").fails(`has ${files.size} models. At most ${maxModelFiles} are allowed`);
  return { supervisor, agents: new Map(agents.map((agent) => [agent.name, agent])) };
}

/** @param servers ids of the MCP servers that are configured @throws as `readAgentsConfig` */
export function checkAgentServers(
  { agents }: AgentsConfig,
  path: string,
  servers: readonly string[],
): void {
  if (servers.includes(delegationServer))
    throw new ConfigReader(kind, path).fails(
      `needs the name "${delegationServer}" for delegation; give the MCP server "${delegationServer}" another one`,
    );
  for (const { name, tools } of agents.values())
    for (const server of tools.keys())
      if (!servers.includes(server))
        throw new ConfigReader(kind, path, null, `agents.${name}.tools.${server}`).fails(
          `names no MCP server that is configured${listed(servers)}`,
        );
}

interface ParseContext {
  names: readonly string[];
  supervisor: string;
  shared: string;
  folder: string;
  env: NodeJS.ProcessEnv;
}

function parseAgent(name: string, entry: ConfigReader, context: ParseContext): AgentConfig {
  if (!legalName.test(name))
    throw entry.fails(
      "has an illegal name: use up to 64 letters, digits, dots, dashes and underscores, a letter or digit first",
    );
  entry.knows(agentKeys);
  const { names, supervisor, shared } = context;
  const others = names.filter((other) => other !== name);
  const delegates = entry.has("agents")
    ? parseDelegates(entry.at("agents"), others)
    : name === supervisor
      ? others
      : [];
  const own = entry.text("instructions", "");
  return {
    name,
    description: entry.text("description"),
    instructions: [shared, own].filter((text) => text !== "").join("\n\n"),
    tools: parseTools(entry.at("tools")),
    delegates,
    limits: parseLimits(entry.at("limits")),
    sampling: parseSampling(entry.at("sampling")),
    source: parseSource(entry, context),
  };
}

function parseSupervisor(file: ConfigReader, names: readonly string[]): string {
  const at = file.at("supervisor");
  if (at.value === undefined)
    throw at.fails(
      `is missing; add "supervisor": "${names[0]}", the agent that people talk to and that may delegate to the others`,
    );
  const name = file.text("supervisor");
  if (names.includes(name)) return name;
  throw at.fails(`names no agent: "${name}"; there are ${names.join(", ")}`);
}

function parseDelegates(delegates: ConfigReader, others: readonly string[]): string[] {
  const found = delegates.texts("an array of names of agents");
  const unknown = found.find((name) => !others.includes(name));
  if (unknown === undefined) return [...new Set(found)];
  throw delegates.fails(
    `names no other agent: "${unknown}"; there ${others.length === 0 ? "is none" : `are ${others.join(", ")}`}`,
  );
}

function parseTools(tools: ConfigReader): AgentConfig["tools"] {
  return new Map(
    tools.entries().map(([server, names]): [string, "*" | ReadonlySet<string>] => {
      if (names.value === "*") return [server, "*"];
      return [server, new Set(names.texts('"*" or an array of names of tools'))];
    }),
  );
}

function parseLimits(limits: ConfigReader): AgentLimits {
  limits.knows(["rounds", "calls", "tokens", "seconds", "depth"]);
  return {
    rounds: limits.integer("rounds", 1, 1000, undefined),
    calls: limits.integer("calls", 0, 10_000, 100),
    tokens: limits.integer("tokens", 1, 100_000_000, undefined),
    seconds: limits.integer("seconds", 1, 86_400, 600),
    depth: limits.integer("depth", 0, 16, 3),
  };
}

function parseSampling(sampling: ConfigReader): AgentSampling {
  const fields = [
    ["temperature", "temperature", 0, 2],
    ["top_p", "topP", 1e-6, 1],
    ["top_k", "topK", 0, 2 ** 31 - 1],
    ["min_p", "minP", 0, 1],
    ["repeat_penalty", "repeatPenalty", 0.01, 100],
    ["frequency_penalty", "frequencyPenalty", -2, 2],
    ["presence_penalty", "presencePenalty", -2, 2],
    ["seed", "seed", 0, 2 ** 32 - 1],
  ] as const;
  sampling.knows(fields.map(([field]) => field));
  const given = fields.flatMap(([field, key, min, max]) => {
    if (!sampling.has(field)) return [];
    const isWhole = field === "top_k" || field === "seed";
    const value = isWhole
      ? sampling.integer(field, min, max, min)
      : sampling.number(field, min, max);
    return [[key, value] as const];
  });
  return Object.fromEntries(given);
}

function parseSource(entry: ConfigReader, { folder, env }: ParseContext): ModelSource {
  if (entry.has("model") && entry.has("endpoint"))
    throw entry.at("endpoint").fails("excludes model: an agent has one of the two, or neither");
  if (entry.has("model")) return { kind: "file", path: resolve(folder, entry.text("model")) };
  if (!entry.has("endpoint")) return { kind: "served" };
  const endpoint = entry.at("endpoint");
  endpoint.knows(["url", "model", "api_key_env", "timeout_seconds", "context_size"]);
  return {
    kind: "endpoint",
    endpoint: {
      url: parseUrl(endpoint),
      model: endpoint.text("model"),
      apiKey: readKey(endpoint, env),
      timeoutMs: endpoint.integer("timeout_seconds", 1, 3600, 120) * 1000,
      contextSize: endpoint.integer("context_size", 32, 2 ** 31 - 1, 128 * 1024),
    },
  };
}

function parseUrl(endpoint: ConfigReader): string {
  const text = endpoint.text("url");
  const url = URL.canParse(text) ? new URL(text) : null;
  const at = endpoint.at("url");
  if (url === null || !["http:", "https:"].includes(url.protocol))
    throw at.fails('must be an address such as "https://api.example.com/v1"');
  if (url.username !== "" || url.password !== "")
    throw at.fails("must not hold a key: put it into the variable that api_key_env names");
  return text.replace(/\/+$/, "").replace(/\/chat\/completions$/, "");
}

/** Keys are in the environment, never in the file. */
function readKey(endpoint: ConfigReader, env: NodeJS.ProcessEnv): string | null {
  if (!endpoint.has("api_key_env")) return null;
  const variable = endpoint.text("api_key_env");
  const key = env[variable] ?? "";
  if (key === "")
    throw endpoint.at("api_key_env").fails(`names the variable ${variable}, which is not set`);
  return key;
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? "; there is none" : ` (${names.join(", ")})`;
}
