/** Arguments of `fermata serve` as option values. */

import { FermataError } from "../errors.ts";
import { didYouMean } from "./nearest.ts";
import { valueFromText } from "./option-values.ts";
import { flagOf, optionKeys, specOf, type OptionKey } from "./options.ts";

interface KnownFlag {
  key: OptionKey;
  /** `--no-…` of a boolean. */
  negated: boolean;
}

const flags = new Map<string, KnownFlag>();
for (const key of optionKeys) {
  const spec = specOf(key);
  for (const name of [flagOf(key), ...(spec.alias ?? [])])
    flags.set(`--${name}`, { key, negated: false });
  if (spec.kind === "boolean") flags.set(`--no-${flagOf(key)}`, { key, negated: true });
}

/**
 * `--name value`, `--name=value`, `--switch`, `--no-switch`. A value that begins with two dashes needs
 * the form with `=`. The last one counts, but lists grow.
 * @throws FermataError invalid_option, naming the nearest valid option
 */
export function parseArguments(args: readonly string[], cwd: string): Map<OptionKey, unknown> {
  const values = new Map<OptionKey, unknown>();
  for (let index = 0; index < args.length; index++) {
    const argument = args[index]!;
    const equals = argument.indexOf("=");
    const name = equals < 0 ? argument : argument.slice(0, equals);
    const inline = equals < 0 ? undefined : argument.slice(equals + 1);
    const { key, negated } = findFlag(name);
    const spec = specOf(key);
    const source = { name, cwd };
    if (spec.kind === "boolean") {
      const value = inline === undefined || (valueFromText(key, inline, source) as boolean);
      values.set(key, value !== negated);
      continue;
    }
    const text = inline ?? takeValue(name, args[++index]);
    const value = valueFromText(key, text, source);
    const earlier = values.get(key);
    values.set(key, Array.isArray(earlier) ? [...earlier, ...(value as string[])] : value);
  }
  return values;
}

function findFlag(name: string): KnownFlag {
  const flag = flags.get(name);
  if (flag !== undefined) return flag;
  const what = name.startsWith("-") ? "Unknown option" : "Unexpected argument";
  throw invalid(
    `${what} ${name}.${didYouMean(name, [...flags.keys()])} "fermata serve --help" lists all.`,
    name,
  );
}

function takeValue(name: string, next: string | undefined): string {
  if (next === undefined) throw invalid(`${name} needs a value.`, name);
  if (next.startsWith("--")) {
    throw invalid(`${name} needs a value. If ${next} is it, write ${name}=${next}.`, name);
  }
  return next;
}

function invalid(message: string, param: string): FermataError {
  return new FermataError("invalid_option", message, { param });
}
