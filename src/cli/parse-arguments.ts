/** Arguments of a command as option values and operands. */

import { type FermataError, invalidOption } from "../errors.ts";
import type { Command, ParsedArguments } from "./command.ts";
import { didYouMean } from "../near-names.ts";
import { llamaServerOption } from "./llama-server-options.ts";
import { flagOf, givenNames, type OptionSpec, type OptionTable } from "./option-table.ts";
import { valueFromText } from "./option-values.ts";

/** Names of before, and what says the same today. */
export const renamedOptions: Readonly<Record<string, string>> = {
  toolTotalTimeout: "--tool-timeout call=SECONDS",
  maxToolSeconds: "--tool-timeout answer=SECONDS",
  approvalTimeout: "--tool-timeout approval=SECONDS",
  responsesToolTimeout: "--tool-timeout output=SECONDS",
  maxToolCalls: "--max-tool-rounds, with 8 calls per round",
  storeDays: "--store-limits days=N",
  storeResponses: "--store-limits responses=N",
  storeMegabytes: "--store-limits megabytes=N",
  chatTemplateFile: "--chat-template FILE",
  drainSeconds: "--process-timeout drain=SECONDS",
  hangTimeout: "--process-timeout loop=SECONDS,step=SECONDS",
};

/** @param name as it was written */
export function renamedOption(name: string, key: string): FermataError {
  const message = `${name} is gone: use ${renamedOptions[key]}.`;
  return invalidOption(message, flagOf(key));
}

interface KnownFlag {
  key: string;
  spec: OptionSpec;
  /** `--no-…` of a boolean. */
  negated: boolean;
}

/**
 * `--name value`, `--name=value`, `--switch`, `--no-switch`. A value that begins with two dashes needs
 * the form with `=`. The last one counts, but lists grow.
 * @throws FermataError invalid_option, naming the nearest valid option
 */
export function parseArguments(
  args: readonly string[],
  command: Command,
  cwd: string,
): ParsedArguments {
  const flags = flagsOf(command.options);
  const values = new Map<string, unknown>();
  const operands: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const argument = args[index]!;
    if (argument === "--") {
      operands.push(...args.slice(index + 1));
      break;
    }
    if (argument === "-" || !argument.startsWith("-")) {
      operands.push(argument);
      continue;
    }
    const equals = argument.indexOf("=");
    const name = equals < 0 ? argument : argument.slice(0, equals);
    const inline = equals < 0 ? undefined : argument.slice(equals + 1);
    const { key, spec, negated } = flags.get(name) ?? unknownOption(name, flags, command);
    const source = { name, cwd };
    if (spec.kind === "boolean") {
      const value =
        inline === undefined || (valueFromText({ key, spec }, inline, source) as boolean);
      values.set(key, value !== negated);
      continue;
    }
    const text = inline ?? takeValue(name, args[++index]);
    const value = valueFromText({ key, spec }, text, source);
    const earlier = values.get(key);
    values.set(key, Array.isArray(earlier) ? [...earlier, ...(value as string[])] : value);
  }
  checkOperands(operands, command);
  return { values, operands };
}

function flagsOf(table: OptionTable): Map<string, KnownFlag> {
  const flags = new Map<string, KnownFlag>();
  for (const [key, spec] of Object.entries(table)) {
    for (const name of givenNames(key, spec)) flags.set(name, { key, spec, negated: false });
    if (spec.kind === "boolean") flags.set(`--no-${flagOf(key)}`, { key, spec, negated: true });
  }
  return flags;
}

function unknownOption(name: string, flags: Map<string, KnownFlag>, command: Command): never {
  const renamed = Object.keys(renamedOptions).find((key) => `--${flagOf(key)}` === name);
  if (renamed !== undefined) throw renamedOption(name, renamed);
  const foreign = command.name === "serve" ? llamaServerOption(name) : null;
  if (foreign !== null) throw foreign;
  throw invalidOption(
    `Unknown option ${name}.${didYouMean(name, similarNames(name, flags))} ${helpHint(command)}`,
    name,
  );
}

/** Any letter is near to any other. */
function similarNames(name: string, flags: Map<string, KnownFlag>): string[] {
  return name.startsWith("--") ? [...flags.keys()].filter((flag) => flag.startsWith("--")) : [];
}

function checkOperands(operands: string[], command: Command): void {
  const { min, max } = command.operands;
  if (operands.length > max) {
    const word = operands[max]!;
    throw invalidOption(`Unexpected argument ${word}. ${helpHint(command)}`, word);
  }
  if (operands.length < min) {
    throw invalidOption(
      `An argument is missing: fermata ${command.usage}. ${helpHint(command)}`,
      command.name,
    );
  }
}

function helpHint({ name }: Command): string {
  return `"fermata ${name} --help" lists all.`;
}

function takeValue(name: string, next: string | undefined): string {
  if (next === undefined) throw invalidOption(`${name} needs a value.`, name);
  if (next.startsWith("--")) {
    throw invalidOption(
      `${name} needs a value. If the value is ${next}, write ${name}=${next}.`,
      name,
    );
  }
  return next;
}
