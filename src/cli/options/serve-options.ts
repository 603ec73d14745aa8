/**
 * Every option of `fermata serve`, once. The parser, the environment, fermata.json and the help all
 * read this table: `ctxSize` is `--ctx-size`, FERMATA_CTX_SIZE and "ctxSize".
 */

import { isPostgresAddress } from "../../store/postgres/address.ts";
import { formats } from "../../chat/formats/formats.ts";
import { reasoningDefaults } from "../../chat/template/reasoning-switch.ts";
import { isTemplateWord, namedTemplates } from "../chat-template.ts";
import { engineOptions } from "./engine-options.ts";
import { llamaOptions } from "./llama-options.ts";
import { inGroup, type OptionTable, type ValuesOf } from "./option-table.ts";

export const serveOptions = {
  ...inGroup("Model", {
    model: {
      kind: "path",
      short: "m",
      value: "PATH",
      help: "GGUF file to serve, the first part of a split one, or a folder with one model; with --models-dir, the default, by path or name. Default: the first of --models-dir, or the model that comes with Fermata.",
    },
    hf: {
      kind: "string",
      short: "hf",
      alias: ["hf-repo"],
      value: "REPO",
      help: "Model of a Hugging Face repository, as OWNER/NAME or OWNER/NAME:Q4_K_M; pulled if it is not here yet.",
    },
    file: {
      kind: "string",
      short: "hff",
      alias: ["hf-file"],
      value: "FILE",
      help: "File of --hf. Default: its Q4_K_M, or the nearest one.",
    },
    modelsDir: {
      kind: "path",
      value: "FOLDER",
      help: "Serve every GGUF model of a folder, each loaded when a request names it. Pulled models are kept there too. Default: --model alone, and fermata/models in your cache folder for pulled ones.",
    },
    modelsMax: {
      kind: "integer",
      min: 1,
      max: 64,
      default: 4,
      value: "N",
      help: "Models of --models-dir in memory at once. Then the one that was used longest ago leaves.",
      fromFolder: true,
    },
    keepAlive: {
      kind: "integer",
      min: -1,
      max: 10 ** 6,
      default: -1,
      value: "SECONDS",
      help: "When a model of --models-dir that nobody uses leaves memory; -1: when its room is needed.",
      fromFolder: true,
    },
    alias: {
      kind: "list",
      short: "a",
      split: true,
      value: "NAME",
      help: "Name of the model for clients, instead of its file name. Repeatable: responses use the first, requests may use any.",
      fromFolder: true,
    },
    embeddingModel: {
      kind: "path",
      value: "FILE",
      help: "GGUF file of a second model, for /v1/embeddings.",
    },
    pooling: {
      kind: "choice",
      choices: ["mean", "cls", "last"],
      help: "How --embedding-model pools a text into one vector. Default: as its file says.",
      fromFolder: true,
    },
    rerankModel: {
      kind: "path",
      value: "FILE",
      help: "GGUF file of a model that ranks, for /v1/rerank.",
    },
    chatTemplate: {
      kind: "path",
      isWord: isTemplateWord,
      alias: ["chat-template-file"],
      value: "TEMPLATE",
      help: `Chat template instead of the model's own: a file, Jinja text, or one of ${namedTemplates.join(", ")}.`,
    },
    toolFormat: {
      kind: "choice",
      choices: ["auto", ...formats.map((format) => format.name)],
      default: "auto",
      value: "NAME",
      help: "How the model writes tool calls; auto finds it from the chat template.",
      fromFolder: true,
    },
    reasoning: {
      kind: "choice",
      choices: [...reasoningDefaults],
      default: "auto",
      help: "Whether the model thinks before it answers, unless the request says; auto: as llama-server.",
      fromFolder: true,
    },
  }),
  ...inGroup("Server", {
    config: {
      kind: "path",
      value: "FILE",
      help: "Options as a JSON object, instead of ./fermata.json.",
    },
    host: {
      kind: "string",
      default: "127.0.0.1",
      value: "ADDRESS",
      help: "Address to listen on; 0.0.0.0 for all. Other machines need a key: --api-key, or --no-auth for none.",
    },
    port: {
      kind: "integer",
      min: 0,
      max: 65535,
      default: 8000,
      value: "PORT",
      help: "Port to listen on; 0 takes a free one.",
      fromFolder: true,
    },
    apiKey: {
      kind: "list",
      split: false,
      neverEmpty: true,
      value: "KEY",
      help: "Key that clients must send. Repeatable; @FILE reads one key per line. Default: no key, for this machine alone.",
    },
    apiKeysFile: {
      kind: "path",
      value: "FILE",
      help: "Keys with names, scopes (infer, tools, admin) and expiry, as docs/cli.md says; read again when the file changes.",
    },
    auth: {
      kind: "boolean",
      default: true,
      help: "Refuse to listen for other machines without a key. --no-auth: whoever reaches the port may call.",
    },
    corsOrigin: {
      kind: "list",
      split: true,
      value: "ORIGIN",
      help: "Web page that may call, as https://app.example; * for all. Repeatable. Default: none.",
    },
    supervise: {
      kind: "boolean",
      default: true,
      help: "Run the engine in a process of its own and start it again if it dies.",
      fromFolder: true,
    },
    processTimeout: {
      kind: "parts",
      max: 86_400,
      parts: {
        drain: { default: 5, min: 0, help: "for running answers to end after SIGINT or SIGTERM" },
        notice: {
          default: 0,
          min: 0,
          help: "before that, in which /ready is 503 and new requests are served, for a proxy to see it",
        },
        loop: { default: 60, help: "of its JavaScript thread without a sign of life" },
        step: { default: 600, help: "of one step of the inference thread" },
      },
      value: "SECONDS",
      help: "When the engine's process is ended or, if it hangs, killed and started again, as drain=5,loop=60.",
      fromFolder: true,
    },
    replica: {
      kind: "string",
      value: "NAME",
      help: "Name of this server among several behind a proxy, in its ids and in the header x-fermata-replica; see docs/scale.md.",
      fromFolder: true,
    },
    uiServer: {
      kind: "boolean",
      default: true,
      help: "Serve the web page at /.",
      fromFolder: true,
    },
    store: {
      kind: "path",
      isWord: (text: string) => text === "none" || isPostgresAddress(text),
      value: "FILE",
      help: 'Where responses and conversations are kept: a file, or a database that servers share, as postgres://USER@HOST/NAME; "none" keeps nothing. Default: fermata/store.sqlite in your data folder.',
    },
    storeOptional: {
      kind: "boolean",
      default: false,
      help: "Serve without a store if it cannot be opened, and say so.",
    },
    storeLimits: {
      kind: "parts",
      max: 10_000_000,
      parts: {
        days: { default: 30, help: "since the last change" },
        responses: { default: 10_000, help: "of each key; the oldest go first" },
        megabytes: { default: 1024, help: "the oldest of the key that keeps the most go first" },
      },
      value: "LIMITS",
      help: "How much is kept, as days=30,megabytes=1024.",
    },
    responsesEvents: {
      kind: "choice",
      choices: ["standard", "extended"],
      default: "standard",
      help: "Events of /v1/responses: OpenAI's alone, or response.tool_call.* as well.",
      fromFolder: true,
    },
    responsesTools: {
      kind: "choice",
      choices: ["close", "held"],
      default: "close",
      help: "close: a response ends with its calls. held: its stream waits for POST /v1/responses/{id}/tool_outputs.",
      fromFolder: true,
    },
    maxBody: {
      kind: "integer",
      min: 1,
      max: 1024,
      default: 4,
      value: "MIB",
      help: "Largest body of a request.",
      fromFolder: true,
    },
    maxToolOutputBytes: {
      kind: "integer",
      min: 1,
      max: 2 ** 30,
      default: 1024 * 1024,
      value: "BYTES",
      help: "Largest output of one tool call, posted or of an MCP server.",
      fromFolder: true,
    },
  }),
  ...engineOptions,
  ...llamaOptions,
  ...inGroup("Tools", {
    mcpConfig: {
      kind: "path",
      value: "FILE",
      help: 'MCP servers, as {"mcpServers": {"id": {"command", "args", "env"} or {"url", "headers"}}}; see docs/mcp.md.',
    },
    mcpCommand: {
      kind: "string",
      value: "PROGRAM",
      help: "A single MCP server to start.",
    },
    mcpArgs: {
      kind: "list",
      split: true,
      value: "A,B",
      help: "Its arguments, separated by commas. Write --mcp-args=--a,b if the first begins with a dash.",
    },
    mcpToolRefreshSeconds: {
      kind: "integer",
      min: 1,
      max: 86_400,
      default: 30,
      value: "N",
      help: "Seconds between two readings of the tool lists.",
      fromFolder: true,
    },
    toolTimeout: {
      kind: "parts",
      max: 86_400,
      parts: {
        silence: { default: 60, help: "of one call without an answer or progress" },
        call: { default: 600, atLeast: "silence", help: "of one call in all" },
        answer: { default: 1800, atLeast: "call", help: "of one answer with all its calls" },
        approval: { default: 300, help: "until a person approves a call; it is denied then" },
        output: { default: 300, help: "until the client of a held response posts an output" },
      },
      value: "SECONDS",
      help: "How long tools may take, as silence=60,call=600; a bare number is silence.",
      fromFolder: true,
    },
    approval: {
      kind: "choice",
      choices: ["ask", "never"],
      default: "ask",
      help: "On the page and in fermata chat, ask a person before calls of tools that are not read-only and have no policy in --mcp-config. Other APIs never ask for these.",
    },
    maxToolRounds: {
      kind: "integer",
      min: 1,
      max: 1000,
      default: 16,
      value: "N",
      help: "Rounds of tool calls one answer may take, with 8 calls per round on average.",
      fromFolder: true,
    },
    allowRequestMcp: {
      kind: "boolean",
      default: false,
      help: "Let requests to /v1/responses name MCP servers on the public internet by server_url.",
    },
    auditLog: {
      kind: "path",
      value: "FILE",
      help: "Appends a line of JSON before and after each tool call: ids, sizes, hashes, who approved, outcome.",
    },
    agents: {
      kind: "path",
      value: "FILE",
      help: "Agents, as docs/agents.md says: each is a model name, with tools, limits and sub-agents.",
    },
  }),
  ...inGroup("Diagnostics", {
    logLevel: {
      kind: "choice",
      variables: ["LOGLEVEL"],
      choices: ["trace", "debug", "info", "warn", "error", "fatal", "silent"],
      synonyms: { notset: "trace", warning: "warn", critical: "fatal" },
      default: "info",
      help: "Lowest level that is logged. LOGLEVEL works too, and so do Python's names.",
      fromFolder: true,
    },
    audit: {
      kind: "boolean",
      default: false,
      help: "Count every row and check the cache when idle. For tests and bug reports.",
      fromFolder: true,
    },
  }),
} as const satisfies OptionTable;

export type OptionKey = keyof typeof serveOptions;
export type ServeConfig = ValuesOf<typeof serveOptions> & {
  /** A key that Fermata made for this run (access.ts). */
  generatedKey?: string | undefined;
};

export const optionKeys = Object.keys(serveOptions) as OptionKey[];
