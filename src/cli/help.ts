/** What `--help` prints, from the table of options. */

import { flagOf, optionKeys, specOf, type OptionKey, type OptionSpec } from "./options.ts";

export const generalHelp = `fermata: an inference engine that holds the KV cache while tools run.

Usage
  fermata serve [options]    Serve a GGUF model over the OpenAI API.
  fermata serve --help       Every option, with examples.
  fermata --version
`;

const examples = `Examples
  The model that comes with Fermata, with tools for one folder:
    fermata serve --mcp-command npx --mcp-args=-y,@modelcontextprotocol/server-filesystem,.
  A model of your own, for eight agents at once:
    fermata serve --model Qwen3-8B-Q4_K_M.gguf --ctx-size 16384 --parallel 8
  For other machines, with a key and several MCP servers:
    fermata serve --host 0.0.0.0 --api-key @keys.txt --mcp-config mcp.json
`;

const column = 34;
const width = 100;

export function serveHelp(): string {
  const groups = [...new Set(optionKeys.map((key) => specOf(key).group))];
  const sections = groups.map((group) => {
    const keys = optionKeys.filter((key) => specOf(key).group === group);
    return `${group}\n${keys.map(optionHelp).join("")}`;
  });
  return [
    "Usage: fermata serve [options]\n",
    ...sections,
    examples,
    `An option may also be an environment variable or a key in ./fermata.json: --ctx-size is\nFERMATA_CTX_SIZE and "ctxSize". Flags come first, then the environment, then the file.\n`,
  ].join("\n");
}

function optionHelp(key: OptionKey): string {
  const spec = specOf(key);
  const names = [flagOf(key), ...(spec.alias ?? [])].map((name) => `--${name}`);
  if (spec.kind === "boolean" && spec.default) names.splice(0, 1, `--no-${flagOf(key)}`);
  const usage = `  ${names.join(", ")}${placeholder(spec)}`;
  const lines = wrap(describe(spec), width - column);
  const first = usage.length < column ? usage.padEnd(column) + lines.shift()! : usage;
  return [first, ...lines.map((line) => " ".repeat(column) + line)]
    .map((line) => `${line}\n`)
    .join("");
}

function placeholder(spec: OptionSpec): string {
  if (spec.kind === "boolean") return "";
  return ` ${spec.value ?? (spec.kind === "choice" ? "CHOICE" : "VALUE")}`;
}

function describe(spec: OptionSpec): string {
  const parts = [spec.help];
  if (spec.kind === "choice") parts.push(`One of ${spec.choices.join(", ")}.`);
  if (spec.kind === "boolean") parts.push(spec.default ? "On by default." : "Off by default.");
  else if ("default" in spec && spec.default !== undefined) parts.push(`Default: ${spec.default}.`);
  return parts.join(" ");
}

function wrap(text: string, limit: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < limit)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
