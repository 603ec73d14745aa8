/** What a command tells of itself, for the help, the parser and the shell completion, and what it does. */

import type { OptionTable } from "../options/option-table.ts";

export interface ParsedArguments {
  /** By key of the option. */
  values: Map<string, unknown>;
  /** Words that are no options. `-` is one; so is everything after `--`. */
  operands: string[];
}

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
  /** Resolves to the exit code, or to null while a server runs. @throws FermataError */
  run(args: ParsedArguments, context: CommandContext): Promise<number | null>;
  /** Finds what `run` would refuse at once, without an engine. @throws FermataError */
  check?(args: ParsedArguments, context: CommandContext): Promise<void>;
}

/** What a command has of its process. */
export interface CommandContext {
  cwd: string;
  env: NodeJS.ProcessEnv;
  out: (text: string) => void;
  err: (text: string) => void;
}
