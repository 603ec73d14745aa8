/** What `--help` prints, from the commands' own tables. */

import type { Command } from "./command.ts";
import { givenNames, type OptionSpec } from "./option-table.ts";

const column = 34;
const width = 100;

export function generalHelp(commands: readonly Command[]): string {
  const lines = commands.map(({ usage, summary }) => `  fermata ${usage.padEnd(28)} ${summary}\n`);
  return `fermata: an inference engine that holds the KV cache while tools run.

Usage
${lines.join("")}
"fermata COMMAND --help" has every option of a command, with examples.
New here? "fermata doctor" says what this machine can do, "fermata chat" talks to a model at once.
`;
}

export function commandHelp({ usage, summary, options, examples, notes }: Command): string {
  const entries = Object.entries(options);
  const groups = [...new Set(entries.map(([, spec]) => spec.group))];
  const sections = groups.map((group) => {
    const members = entries.filter(([, spec]) => spec.group === group);
    return `${group}\n${members.map(([key, spec]) => optionHelp(key, spec)).join("")}`;
  });
  return [
    `Usage: fermata ${usage}\n\n${summary}\n`,
    ...sections,
    `Examples\n${examples}`,
    ...(notes === undefined ? [] : [notes]),
  ].join("\n");
}

function optionHelp(key: string, spec: OptionSpec): string {
  // What is on by default is described by what it does: only its switch says how to turn it off.
  const optional = spec.kind === "boolean" && spec.default !== false ? "[no-]" : "";
  const names = givenNames(key, spec).map((name) => name.replace(/^--/, `--${optional}`));
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
  if (spec.kind === "parts")
    for (const [name, { help, default: value }] of Object.entries(spec.parts))
      parts.push(`${name}=${value}: ${help}.`);
  if (spec.kind === "boolean" && spec.default !== undefined)
    parts.push(spec.default ? "On by default." : "Off by default.");
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
