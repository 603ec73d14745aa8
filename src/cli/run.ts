/** The command line, apart from the process that it runs in, and its help. */

import { type FermataError, invalidOption } from "../errors.ts";
import type { Command, CommandContext, ParsedArguments } from "./commands/command.ts";
import { commands } from "./commands/commands.ts";
import { describeFailure } from "./failure.ts";
import { didYouMean } from "../near-names.ts";
import { packageVersion } from "./folders.ts";
import { parseArguments } from "./options/parse-arguments.ts";
import { givenNames, type OptionSpec } from "./options/option-table.ts";

/** Resolves to the exit code, or to null while a server runs. Never rejects. */
export async function runCommandLine(
  args: readonly string[],
  context: CommandContext,
): Promise<number | null> {
  return await answer(args, context, ({ command, parsed }) => command.run(parsed, context));
}

/**
 * What can be said while there is no engine yet: help, and the mistakes in a command that would not
 * become right in the minutes that its build takes. Resolves to the exit code, or to null if the
 * command is to run. Never rejects.
 */
export async function answerBeforeBuild(
  args: readonly string[],
  context: CommandContext,
): Promise<number | null> {
  return await answer(args, context, async ({ command, parsed }) => {
    await command.check?.(parsed, context);
    return null;
  });
}

interface CommandLine {
  command: Command;
  parsed: ParsedArguments;
}

async function answer(
  args: readonly string[],
  context: CommandContext,
  work: (line: CommandLine) => Promise<number | null>,
): Promise<number | null> {
  try {
    const line = readCommandLine(args, context);
    if (typeof line !== "string") return await work(line);
    context.out(line);
    return 0;
  } catch (error) {
    const { text, exitCode } = describeFailure(error);
    context.err(text);
    return exitCode;
  }
}

/** A text that was asked for, or a command to run. @throws FermataError invalid_option */
function readCommandLine(args: readonly string[], context: CommandContext): string | CommandLine {
  const [name = "--help", ...rest] = args;
  if (name === "--help" || name === "-h" || (name === "help" && rest.length === 0))
    return generalHelp(commands);
  if (name === "help") return readCommandLine([rest[0]!, "--help"], context);
  if (name === "--version" || name === "-v") return `${packageVersion()}\n`;
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) throw unknownCommand(name);
  if (asksForHelp(rest)) return commandHelp(command);
  return { command, parsed: parseArguments(rest, command, context.cwd) };
}

/** What stands after `--` is meant for the command. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  const own = end < 0 ? args : args.slice(0, end);
  return own.includes("--help") || own.includes("-h");
}

/** What Ollama and LM Studio call them. */
const otherPrograms: Readonly<Record<string, string>> = {
  run: "chat",
  start: "serve",
  get: "pull",
  ls: "list",
  stop: "ps",
  delete: "rm",
};

function unknownCommand(name: string): FermataError {
  const names = commands.map((command) => command.name);
  const hint = name.startsWith("-")
    ? ` Options come after the command: fermata serve ${name}`
    : didYouMean(otherPrograms[name] ?? name, names);
  return invalidOption(`Unknown command ${name}.${hint}`, name);
}

const column = 34;
const width = 100;

function generalHelp(commands: readonly Command[]): string {
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
