/** What a command's options are made of. The parser, the help and the completion read such tables. */

export type OptionSpec = {
  /** Heading in the help. */
  group: string;
  help: string;
  /** Further long names. */
  alias?: readonly string[];
  /** Further environment variables, after FERMATA_…. */
  variables?: readonly string[];
  /** Placeholder of the value in the help. */
  value?: string;
} & (
  | { kind: "string"; default?: string }
  /** Relative to the working directory. */
  | { kind: "path" }
  | { kind: "boolean"; default: boolean }
  | { kind: "integer"; min: number; max: number; default?: number }
  /** `synonyms`: other words for choices. */
  | {
      kind: "choice";
      choices: readonly string[];
      synonyms?: Readonly<Record<string, string>>;
      default?: string;
    }
  /** May be given several times; an array in JSON. `split`: one value may hold several. */
  | { kind: "list"; split: boolean }
);

/** By key: `ctxSize` is `--ctx-size`. */
export type OptionTable = Readonly<Record<string, OptionSpec>>;

type ValueOf<Spec> = Spec extends { kind: "boolean" }
  ? boolean
  : Spec extends { kind: "list" }
    ? string[]
    : Spec extends { kind: "integer" }
      ? number | (Spec extends { default: number } ? never : undefined)
      : Spec extends { kind: "choice"; choices: readonly (infer Choice)[] }
        ? Choice | (Spec extends { default: string } ? never : undefined)
        : string | (Spec extends { default: string } ? never : undefined);

export type ValuesOf<Table extends OptionTable> = {
  -readonly [Key in keyof Table]: ValueOf<Table[Key]>;
};

/** `ctxSize` -> `ctx-size` */
export function flagOf(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** `ctxSize` -> `FERMATA_CTX_SIZE` */
export function variableOf(key: string): string {
  return `FERMATA_${flagOf(key).replaceAll("-", "_").toUpperCase()}`;
}

export function defaultOf(spec: OptionSpec): unknown {
  if (spec.kind === "list") return [];
  return "default" in spec ? spec.default : undefined;
}

/** `--ctx-size`, its aliases, and `--no-…` of a boolean. */
export function flagNames(key: string, { kind, alias = [] }: OptionSpec): string[] {
  const names = [flagOf(key), ...alias].map((name) => `--${name}`);
  return kind === "boolean" ? [...names, `--no-${flagOf(key)}`] : names;
}
