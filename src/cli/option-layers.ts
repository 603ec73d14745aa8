/** Values of a command's options from several sources, the first that has one counts. */

import { defaultOf, type OptionTable, type ValuesOf, variableOf } from "./option-table.ts";
import { valueFromText } from "./option-values.ts";

export type Layer = ReadonlyMap<string, unknown>;

export function mergeLayers<Table extends OptionTable>(
  table: Table,
  layers: readonly Layer[],
): ValuesOf<Table> {
  const values = Object.entries(table).map(([key, spec]) => [
    key,
    layers.find((layer) => layer.has(key))?.get(key) ?? defaultOf(spec),
  ]);
  return Object.fromEntries(values) as ValuesOf<Table>;
}

/** An empty variable is none. @throws FermataError invalid_option */
export function fromEnvironment(
  table: OptionTable,
  env: NodeJS.ProcessEnv,
  cwd: string,
): Map<string, unknown> {
  const values = new Map<string, unknown>();
  for (const [key, spec] of Object.entries(table)) {
    const names = [variableOf(key), ...(spec.variables ?? [])];
    const name = names.find((candidate) => (env[candidate] ?? "") !== "");
    if (name !== undefined)
      values.set(key, valueFromText({ key, spec }, env[name]!, { name, cwd }));
  }
  return values;
}
