import type { Command } from "../command.ts";
import type { OptionTable } from "../option-table.ts";
import { serveOptions } from "../options.ts";

export const chatOptions = {
  url: {
    group: "Chat",
    kind: "string",
    value: "URL",
    help: "Server to talk to. Default: the one on this machine's --port; if none runs there, the engine starts in this process.",
  },
  use: {
    group: "Chat",
    kind: "string",
    value: "NAME",
    help: "Model or agent to talk to, of those that /model lists.",
  },
  open: {
    group: "Chat",
    kind: "string",
    value: "ID",
    help: 'Conversation to go on with: an id, or "last".',
  },
  instructions: {
    group: "Chat",
    kind: "string",
    value: "TEXT",
    help: "System message of a new conversation.",
  },
  approve: {
    group: "Chat",
    kind: "choice",
    choices: ["ask", "all", "none"],
    default: "ask",
    help: "What becomes of calls that need approval. Where nobody can be asked, ask denies.",
  },
  showReasoning: {
    group: "Chat",
    kind: "boolean",
    default: false,
    help: "Show what the model thinks.",
  },
  json: {
    group: "Chat",
    kind: "boolean",
    default: false,
    help: "Print the answer, its calls and its usage as one JSON object.",
  },
} as const satisfies OptionTable;

export const chatCommand: Command = {
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
};
