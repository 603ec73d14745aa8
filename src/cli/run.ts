/** The command line, apart from the process that it runs in. */

import { FermataError } from "../errors.ts";
import type { CommandContext } from "./command.ts";
import { commands } from "./commands.ts";
import { describeFailure } from "./failure.ts";
import { commandHelp, generalHelp } from "./help.ts";
import { didYouMean } from "./nearest.ts";
import { packageVersion } from "./package-files.ts";
import { parseArguments } from "./parse-arguments.ts";

/** Resolves to the exit code, or to null while a server runs. Never rejects. */
export async function runCommandLine(
  args: readonly string[],
  context: CommandContext,
): Promise<number | null> {
  try {
    return await dispatch(args, context);
  } catch (error) {
    const { text, exitCode } = describeFailure(error);
    context.err(text);
    return exitCode;
  }
}

async function dispatch(args: readonly string[], context: CommandContext): Promise<number | null> {
  const [name = "--help", ...rest] = args;
  if (name === "--help" || name === "-h" || (name === "help" && rest.length === 0))
    return print(context, generalHelp(commands));
  if (name === "help") return dispatch([rest[0]!, "--help"], context);
  if (name === "--version" || name === "-v") return print(context, `${packageVersion()}\n`);
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) throw unknownCommand(name);
  if (asksForHelp(rest)) return print(context, commandHelp(command));
  return command.run(parseArguments(rest, command, context.cwd), context);
}

/** What stands after `--` is meant for the command. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  const own = end < 0 ? args : args.slice(0, end);
  return own.includes("--help") || own.includes("-h");
}

function print(context: CommandContext, text: string): number {
  context.out(text);
  return 0;
}

function unknownCommand(name: string): FermataError {
  const names = commands.map((command) => command.name);
  const hint = name.startsWith("-")
    ? ` Options come after the command: fermata serve ${name}`
    : didYouMean(name, names);
  return new FermataError("invalid_option", `Unknown command ${name}.${hint}`, { param: name });
}
