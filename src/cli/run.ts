/** The command line, apart from the process that it runs in. */

import { type FermataError, invalidOption } from "../errors.ts";
import type { Command, CommandContext, ParsedArguments } from "./command.ts";
import { commands } from "./commands.ts";
import { describeFailure } from "./failure.ts";
import { commandHelp, generalHelp } from "./help.ts";
import { didYouMean } from "../near-names.ts";
import { packageVersion } from "./folders.ts";
import { parseArguments } from "./parse-arguments.ts";

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
