/**
 * Every option of `fermata serve`, once. The parser, the environment, fermata.json and the help all
 * read this table: `ctxSize` is `--ctx-size`, FERMATA_CTX_SIZE and "ctxSize".
 */

import { formats } from "../chat/formats/formats.ts";

export type OptionSpec = {
  group: "Model" | "Server" | "Engine" | "Tools" | "Diagnostics";
  help: string;
  /** Further long names. */
  alias?: readonly string[];
  /** Placeholder of the value in the help. */
  value?: string;
} & (
  | { kind: "string"; default?: string }
  /** Relative to the working directory. */
  | { kind: "path" }
  | { kind: "boolean"; default: boolean }
  | { kind: "integer"; min: number; max: number; default?: number }
  | { kind: "choice"; choices: readonly string[]; default?: string }
  /** May be given several times; an array in JSON. `split`: one value may hold several. */
  | { kind: "list"; split: boolean }
);

const kvTypes = ["f32", "f16", "bf16", "q8_0", "q4_0"] as const;

const options = {
  model: {
    group: "Model",
    kind: "path",
    alias: ["w"],
    value: "FILE",
    help: "GGUF file to serve. Default: the model that comes with Fermata.",
  },
  embeddingModel: {
    group: "Model",
    kind: "path",
    value: "FILE",
    help: "GGUF file of a second model, for /v1/embeddings.",
  },
  toolFormat: {
    group: "Model",
    kind: "choice",
    choices: ["auto", ...formats.map((format) => format.name)],
    default: "auto",
    value: "NAME",
    help: "How the model writes tool calls; auto finds it from the chat template.",
  },

  host: {
    group: "Server",
    kind: "string",
    default: "127.0.0.1",
    value: "ADDRESS",
    help: "Address to listen on; 0.0.0.0 for all.",
  },
  port: {
    group: "Server",
    kind: "integer",
    min: 0,
    max: 65535,
    default: 8000,
    value: "PORT",
    help: "Port to listen on; 0 takes a free one.",
  },
  apiKey: {
    group: "Server",
    kind: "list",
    split: false,
    value: "KEY",
    help: "Key that clients must send. Repeatable; @FILE reads one key a line. Default: no key.",
  },
  corsOrigin: {
    group: "Server",
    kind: "list",
    split: true,
    value: "ORIGIN",
    help: "Web page that may call, as https://app.example; * for all. Repeatable. Default: none.",
  },
  drainSeconds: {
    group: "Server",
    kind: "integer",
    min: 0,
    max: 3600,
    default: 5,
    value: "N",
    help: "How long running answers may go on after SIGINT or SIGTERM.",
  },
  supervise: {
    group: "Server",
    kind: "boolean",
    default: true,
    help: "Run the engine in a process of its own and start it again if it dies.",
  },
  store: {
    group: "Server",
    kind: "string",
    value: "FILE",
    help: 'Where responses and conversations are kept; "none" keeps nothing. Default: fermata/store.sqlite in your data folder.',
  },
  storeDays: {
    group: "Server",
    kind: "integer",
    min: 1,
    max: 36_500,
    default: 30,
    value: "DAYS",
    help: "How long they are kept.",
  },
  storeResponses: {
    group: "Server",
    kind: "integer",
    min: 1,
    max: 10_000_000,
    default: 10_000,
    value: "N",
    help: "How many responses are kept; the oldest go first.",
  },
  storeMegabytes: {
    group: "Server",
    kind: "integer",
    min: 1,
    max: 1_000_000,
    default: 1024,
    value: "MIB",
    help: "How much is kept; the oldest go first.",
  },
  responsesEvents: {
    group: "Server",
    kind: "choice",
    choices: ["standard", "extended"],
    default: "standard",
    help: "Events of /v1/responses: OpenAI's alone, or response.tool_call.* as well.",
  },
  responsesTools: {
    group: "Server",
    kind: "choice",
    choices: ["close", "held"],
    default: "close",
    help: "A response with calls ends, or waits for POST /v1/responses/{id}/tool_outputs.",
  },
  responsesToolTimeout: {
    group: "Server",
    kind: "integer",
    min: 1,
    max: 86_400,
    default: 300,
    value: "SECONDS",
    help: "How long a held response waits for an output.",
  },
  maxToolOutputBytes: {
    group: "Server",
    kind: "integer",
    min: 1,
    max: 2 ** 30,
    default: 1024 * 1024,
    value: "BYTES",
    help: "Size of one output of a tool, posted or of an MCP server.",
  },

  ctxSize: {
    group: "Engine",
    kind: "integer",
    min: 32,
    max: 2 ** 24,
    value: "TOKENS",
    help: "Tokens one sequence may hold. Default: what the model was trained for, at most 8192.",
  },
  parallel: {
    group: "Engine",
    kind: "integer",
    min: 1,
    max: 256,
    default: 4,
    value: "N",
    help: "Sequences that run at once; more wait.",
  },
  retainedSlots: {
    group: "Engine",
    kind: "integer",
    min: 0,
    max: 256,
    value: "N",
    help: "Slots beyond --parallel for held and retained sequences. Default: as --parallel.",
  },
  contextCache: {
    group: "Engine",
    kind: "boolean",
    default: true,
    help: "Keep the KV cache of finished requests for later ones. Held sequences do not depend on it.",
  },
  threads: {
    group: "Engine",
    kind: "integer",
    min: 1,
    max: 512,
    value: "N",
    help: "CPU threads. Default: the physical cores.",
  },
  nGpuLayers: {
    group: "Engine",
    kind: "integer",
    min: -1,
    max: 10_000,
    default: 0,
    value: "N",
    help: "Layers on the GPU; -1 for all.",
  },
  flashAttn: {
    group: "Engine",
    kind: "choice",
    choices: ["on", "off", "auto"],
    default: "auto",
    help: "Flash attention; auto decides by device.",
  },
  cacheTypeK: {
    group: "Engine",
    kind: "choice",
    choices: kvTypes,
    help: "Type of the cached keys. Default: f16.",
  },
  cacheTypeV: {
    group: "Engine",
    kind: "choice",
    choices: kvTypes,
    help: "Type of the cached values. Default: f16.",
  },
  kvLayout: {
    group: "Engine",
    kind: "choice",
    choices: ["streams", "unified", "auto"],
    default: "auto",
    help: "One cache a sequence, or one for all; auto decides by device.",
  },

  mcpConfig: {
    group: "Tools",
    kind: "path",
    value: "FILE",
    help: 'MCP servers, as {"mcpServers": {"id": {"command", "args", "env"} or {"url", "headers"}}}; see docs/mcp.md.',
  },
  mcpCommand: {
    group: "Tools",
    kind: "string",
    value: "PROGRAM",
    help: "A single MCP server to start.",
  },
  mcpArgs: {
    group: "Tools",
    kind: "list",
    split: true,
    value: "A,B",
    help: "Its arguments, separated by commas. Write --mcp-args=--a,b if the first begins with a dash.",
  },
  mcpToolRefreshSeconds: {
    group: "Tools",
    kind: "integer",
    min: 1,
    max: 86_400,
    default: 30,
    value: "N",
    help: "How often tool lists are asked for again.",
  },
  toolTimeout: {
    group: "Tools",
    kind: "integer",
    min: 1,
    max: 86_400,
    default: 60,
    value: "SECONDS",
    help: "Time a tool call may take without an answer or progress.",
  },
  toolTotalTimeout: {
    group: "Tools",
    kind: "integer",
    min: 1,
    max: 86_400,
    default: 600,
    value: "SECONDS",
    help: "Time a tool call may take in all, however much progress it reports.",
  },
  maxToolRounds: {
    group: "Tools",
    kind: "integer",
    min: 1,
    max: 1000,
    default: 16,
    value: "N",
    help: "Rounds of tool calls one answer may take.",
  },
  approvalTimeout: {
    group: "Tools",
    kind: "integer",
    min: 1,
    max: 86_400,
    default: 300,
    value: "SECONDS",
    help: "How long a call waits for a person's approval; it is denied then.",
  },
  allowRequestMcp: {
    group: "Tools",
    kind: "boolean",
    default: false,
    help: "Let requests to /v1/responses name MCP servers on the public internet by server_url.",
  },
  auditLog: {
    group: "Tools",
    kind: "path",
    value: "FILE",
    help: "Appends a line of JSON for each tool call: ids, sizes, hashes, duration, outcome.",
  },

  agents: {
    group: "Tools",
    kind: "path",
    value: "FILE",
    help: "Agents, as docs/agents.md says: each is a model name, with tools, limits and sub-agents.",
  },

  logLevel: {
    group: "Diagnostics",
    kind: "choice",
    choices: ["trace", "debug", "info", "warn", "error", "fatal", "silent"],
    default: "info",
    help: "Least level that is logged. LOGLEVEL works too.",
  },
  audit: {
    group: "Diagnostics",
    kind: "boolean",
    default: false,
    help: "Count every row and check the cache when idle. For tests and bug reports.",
  },
} as const satisfies Record<string, OptionSpec>;

export type OptionKey = keyof typeof options;

type ValueOf<Spec> = Spec extends { kind: "boolean" }
  ? boolean
  : Spec extends { kind: "list" }
    ? string[]
    : Spec extends { kind: "integer" }
      ? number | (Spec extends { default: number } ? never : undefined)
      : Spec extends { kind: "choice"; choices: readonly (infer Choice)[] }
        ? Choice | (Spec extends { default: string } ? never : undefined)
        : string | (Spec extends { default: string } ? never : undefined);

export type ServeConfig = { [Key in OptionKey]: ValueOf<(typeof options)[Key]> };

export const optionKeys = Object.keys(options) as OptionKey[];

export function specOf(key: OptionKey): OptionSpec {
  return options[key];
}

/** `ctxSize` -> `ctx-size` */
export function flagOf(key: OptionKey): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** `ctxSize` -> `FERMATA_CTX_SIZE` */
export function variableOf(key: OptionKey): string {
  return `FERMATA_${flagOf(key).replaceAll("-", "_").toUpperCase()}`;
}

export function defaultOf(key: OptionKey): unknown {
  const spec = specOf(key);
  if (spec.kind === "list") return [];
  return "default" in spec ? spec.default : undefined;
}
