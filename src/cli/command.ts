/** What every command tells of itself; the help, the parser and the shell completion read it. */

import { serveOptions } from "./options.ts";
import type { OptionTable } from "./option-table.ts";

export interface Command {
  name: string;
  /** One line, for the list of commands. */
  summary: string;
  /** After `fermata`. */
  usage: string;
  /** Words that are no options: how many there may be. */
  operands: { min: number; max: number; choices?: readonly string[] };
  options: OptionTable;
  examples: string;
  notes?: string;
}

/** What a command has of its process. */
export interface CommandContext {
  cwd: string;
  env: NodeJS.ProcessEnv;
  out: (text: string) => void;
  err: (text: string) => void;
}

export const serveCommand: Command = {
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
"fermata --help" names the other commands. In a clone "npm start --" stands for "fermata".
`,
};
