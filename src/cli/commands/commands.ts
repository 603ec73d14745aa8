/** The commands. What a command needs is loaded when it runs: help and mistakes need no engine. */

import type { Command } from "./command.ts";
import { inGroup } from "../options/option-table.ts";
import { serveOptions } from "../options/serve-options.ts";
import { completionCommand, runCompletion } from "./completion-command.ts";
import { listCommand, psCommand, rmCommand, showCommand } from "./models-command.ts";
import { rpcServerCommand } from "./rpc-server-command.ts";
import { serviceCommand } from "./service-command.ts";
import { traceCommand } from "./trace-command.ts";
import { storeCommand } from "./store-command.ts";
import { trustCommand } from "./trust-command.ts";

export const chatOptions = inGroup("Chat", {
  url: {
    kind: "string",
    value: "URL",
    help: "Server to talk to. Default: the one on this machine's --port; if none runs there, the engine starts in this process.",
  },
  use: {
    kind: "string",
    value: "NAME",
    help: "Model or agent to talk to. /model lists them.",
  },
  open: {
    kind: "string",
    value: "ID",
    help: 'Conversation to continue: an id, or "last".',
  },
  instructions: {
    kind: "string",
    value: "TEXT",
    help: "System message of a new conversation.",
  },
  approve: {
    kind: "choice",
    choices: ["ask", "all", "none"],
    default: "ask",
    help: "What happens to calls that need approval. Without a terminal, ask denies them.",
  },
  showReasoning: {
    kind: "boolean",
    default: false,
    help: "Show what the model thinks.",
  },
  json: {
    kind: "boolean",
    default: false,
    help: "Print the answer, its calls and its usage as one JSON object.",
  },
});

const chatCommand: Command = {
  name: "chat",
  summary: "Talk to a model in the terminal.",
  usage: "chat [PROMPT | -] [options]",
  operands: { min: 0, max: 2 },
  options: { ...chatOptions, ...serveOptions },
  examples: `  A conversation; /help lists what can be typed:
    fermata chat
  One question, with tools for one folder:
    fermata chat "What is in notes.txt?" --mcp-command npx \\
      --mcp-args=-y,@modelcontextprotocol/server-filesystem,.
  In a pipe: "-" stands for standard input, the answer alone goes to standard output:
    echo "Why is the sky blue?" | fermata chat -
    git diff | fermata chat "Review this change:" -
  For scripts:
    fermata chat "List the files" --approve all --json | jq -r .message
  A server elsewhere, and the conversation from before:
    fermata chat --url http://host:8000 --api-key KEY --open last
`,
  notes: `Ctrl-C stops the answer; once more leaves. Options of "fermata serve" that say what is served start
an engine in this process. Exit code: 0 answered, 1 failed, 2 a wrong command, 130 interrupted.
`,
  run: async (...input) => (await import("../chat/run-chat.ts")).runChat(...input),
};

export const mcpOptions = inGroup("MCP", {
  url: {
    kind: "string",
    value: "URL",
    help: "Server to use. Default: the one on this machine's --port; if none runs there, the engine starts in this process.",
  },
});

const mcpCommand: Command = {
  name: "mcp",
  summary: "Be an MCP server: the model and the agents as tools for other programs.",
  usage: "mcp [login NAME | logout NAME] [options]",
  operands: { min: 0, max: 2, choices: ["login", "logout"] },
  options: { ...mcpOptions, ...serveOptions },
  examples: `  In the mcp.json of an MCP client, beside a running "fermata serve":
    {"mcpServers": {"fermata": {"command": "fermata", "args": ["mcp"]}}}
  A server elsewhere:
    fermata mcp --url http://host:8000 --api-key KEY
  With a model of its own:
    fermata mcp --model Qwen3-8B-Q4_K_M.gguf --agents agents.json
  A login at a remote MCP server of mcp.json that asks for one, and its end:
    fermata mcp login hub --mcp-config mcp.json
    fermata mcp logout hub --mcp-config mcp.json
`,
  notes: `It speaks MCP on standard input and output and logs to standard error. Options of "fermata serve"
that say what is served start an engine in this process. The same tools are at /mcp of every server.
A login shows an address to open in a browser of this machine, and waits five minutes.
`,
  run: async (...input) => (await import("../mcp/run-mcp.ts")).runMcp(...input),
};

export const hubOptions = inGroup("Hub", {
  revision: {
    kind: "string",
    default: "main",
    value: "NAME",
    help: "Branch, tag or commit.",
  },
  token: {
    kind: "string",
    variables: ["HF_TOKEN"],
    value: "TOKEN",
    help: "For private and gated repositories; HF_TOKEN works too. Only the hub's own host sees it.",
  },
  endpoint: {
    kind: "string",
    variables: ["HF_ENDPOINT"],
    default: "https://huggingface.co",
    value: "URL",
    help: "Another hub; HF_ENDPOINT works too.",
  },
});

export const pullOptions = {
  ...inGroup("Model", {
    file: {
      kind: "string",
      alias: ["f"],
      value: "FILE",
      help: "File to pull; for a split model, any part. Default: its Q4_K_M, or the nearest one.",
    },
    list: {
      kind: "boolean",
      default: false,
      help: "List the models of the repository and pull nothing.",
    },
  }),
  modelsDir: {
    ...serveOptions.modelsDir,
    help: "Folder to keep the model in. Default: fermata/models in your cache folder.",
  },
  ...hubOptions,
};

const pullCommand: Command = {
  name: "pull",
  summary: "Fetch a GGUF model from a Hugging Face repository.",
  usage: "pull OWNER/NAME [options]",
  operands: { min: 1, max: 1 },
  options: pullOptions,
  examples: `  The Q4_K_M of a repository, or what comes nearest; it prints the path of the file:
    fermata pull Qwen/Qwen3-8B-GGUF
  Another quantization, or a file by its name:
    fermata pull Qwen/Qwen3-8B-GGUF:Q8_0
    fermata pull Qwen/Qwen3-8B-GGUF --file Qwen3-8B-Q5_K_M.gguf
  What there is, with sizes:
    fermata pull Qwen/Qwen3-8B-GGUF --list
  A gated repository:
    HF_TOKEN=hf_... fermata pull OWNER/NAME-GGUF
`,
  notes: `A pull that was cut goes on where it stopped when the same command is given again. A file gets its
name only when its checksum is right. "fermata serve --hf OWNER/NAME" pulls and serves.
`,
  run: async (...input) => (await import("../pull/pull.ts")).runPull(...input),
};

export const doctorOptions = inGroup("Doctor", {
  json: {
    kind: "boolean",
    default: false,
    help: "Print all of it as one JSON object.",
  },
});

const doctorCommand: Command = {
  name: "doctor",
  summary: "Say what this machine can do, what would be served, and what is wrong.",
  usage: "doctor [options]",
  operands: { min: 0, max: 0 },
  options: { ...doctorOptions, ...serveOptions },
  examples: `  The machine, the build, and what "fermata serve" would do here:
    fermata doctor
  Would this model fit, with these options?
    fermata doctor --model Qwen3-8B-Q4_K_M.gguf --ctx-size 32768 --parallel 8
  For a bug report, or a script:
    fermata doctor --json
`,
  notes: `It takes every option of "fermata serve", loads no model and changes nothing. Exit code: 0 if
serving would work, 1 if something must be done first.
`,
  run: async (...input) => (await import("../doctor/run-doctor.ts")).runDoctor(...input),
};

const serveCommand: Command = {
  name: "serve",
  summary: "Serve a GGUF model over the OpenAI API, with a chat page.",
  usage: "serve [options]",
  operands: { min: 0, max: 0 },
  options: serveOptions,
  examples: `  The model that comes with Fermata, with tools for one folder:
    fermata serve --mcp-command npx --mcp-args=-y,@modelcontextprotocol/server-filesystem,.
  A model of your own, for eight agents at once:
    fermata serve --model Qwen3-8B-Q4_K_M.gguf --ctx-size 16384 --parallel 8
  A model from a Hugging Face repository, pulled at the first start:
    fermata serve --hf Qwen/Qwen3-8B-GGUF
  For other machines, with a key and several MCP servers:
    fermata serve --host 0.0.0.0 --api-key @keys.txt --mcp-config mcp.json
`,
  notes: `An option may also be an environment variable or a key in ./fermata.json: --ctx-size is
FERMATA_CTX_SIZE and "ctxSize". Flags come first, then the environment, then the file. Keys of
./fermata.json that run or open something need "fermata trust"; a file named with --config does not.
"fermata help" names the other commands. In a clone "npm start --" stands for "fermata".
`,
  run: async (...input) => (await import("../run-serve.ts")).runServe(...input),
  check: async (...input) => (await import("../run-serve.ts")).checkServe(...input),
};

export const commands: readonly Command[] = [
  serveCommand,
  chatCommand,
  mcpCommand,
  pullCommand,
  doctorCommand,
  listCommand,
  showCommand,
  psCommand,
  rmCommand,
  traceCommand,
  trustCommand,
  storeCommand,
  serviceCommand,
  rpcServerCommand,
  { ...completionCommand, run: async (...input) => runCompletion(...input, commands) },
];
