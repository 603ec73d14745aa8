/** What every command tells of itself; the help, the parser and the shell completion read it. */

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
