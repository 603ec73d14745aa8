/** The commands. What a command needs is loaded when it runs: help and mistakes need no engine. */

import { chatCommand } from "./chat/command.ts";
import { type Command, type CommandContext, serveCommand } from "./command.ts";
import { completionCommand, runCompletion } from "./completion.ts";
import { doctorCommand } from "./doctor/command.ts";
import type { ParsedArguments } from "./parse-arguments.ts";
import { pullCommand } from "./pull/command.ts";
import { runTrust, trustCommand } from "./trust-command.ts";

export interface RunnableCommand extends Command {
  /** Resolves to the exit code, or to null while a server runs. @throws FermataError */
  run(args: ParsedArguments, context: CommandContext): Promise<number | null>;
  /** Finds what `run` would refuse at once, without an engine. @throws FermataError */
  check?(args: ParsedArguments, context: CommandContext): Promise<void>;
}

export const commands: readonly RunnableCommand[] = [
  {
    ...serveCommand,
    run: async (...input) => (await import("./run-serve.ts")).runServe(...input),
    check: async (...input) => (await import("./run-serve.ts")).checkServe(...input),
  },
  {
    ...chatCommand,
    run: async (...input) => (await import("./chat/run-chat.ts")).runChat(...input),
  },
  {
    ...pullCommand,
    run: async (...input) => (await import("./pull/pull.ts")).runPull(...input),
  },
  {
    ...doctorCommand,
    run: async (...input) => (await import("./doctor/run-doctor.ts")).runDoctor(...input),
  },
  {
    ...trustCommand,
    run: runTrust,
  },
  {
    ...completionCommand,
    run: async (...input) => runCompletion(...input, commands),
  },
];
