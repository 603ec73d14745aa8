/** What a command's options are made of. The parser, the help and the completion read such tables. */

export type OptionSpec = {
  /** Heading in the help. */
  group: string;
  help: string;
  /** Further long names. */
  alias?: readonly string[];
  /** llama-server's short name, after one hyphen: `-m`, `-ngl`. */
  short?: string;
  /** Further environment variables, after FERMATA_…. */
  variables?: readonly string[];
  /** Placeholder of the value in the help. */
  value?: string;
  /**
   * May stand in the fermata.json of a folder that nobody trusts: it runs, opens, sends and deletes
   * nothing, and makes nobody else reach the server. Left out: it may not.
   */
  fromFolder?: true;
  /** Set but empty is a mistake. Left out: an empty variable is none. */
  neverEmpty?: true;
} & (
  | { kind: "string"; default?: string }
  /** Relative to the working directory, or to the file that names it. `isWord`: what is no path. */
  | { kind: "path"; isWord?: (text: string) => boolean }
  /** Without a default, the help says what happens when it is not given. */
  | { kind: "boolean"; default?: boolean }
  /** `words` stand for numbers, or for that none is given. */
  | {
      kind: "integer";
      min: number;
      max: number;
      default?: number;
      words?: Readonly<Record<string, number | undefined>>;
    }
  /** Any number. */
  | { kind: "number"; min: number; max: number }
  /** `synonyms`: other words for choices. */
  | {
      kind: "choice";
      choices: readonly string[];
      synonyms?: Readonly<Record<string, string>>;
      default?: string;
    }
  /** May be given several times; an array in JSON. `split`: one value may hold several. */
  | { kind: "list"; split: boolean }
  /** Numbers by name, as `a=1,b=2`; an object in JSON. A bare number is the first one's. */
  | { kind: "parts"; max: number; parts: Readonly<Record<string, Part>> }
);

/** Of `kind: "parts"`: a whole number. */
export interface Part {
  /** Default: 1. */
  min?: number;
  default: number;
  help: string;
  /** A part that is raised above this one raises it, unless it is given. */
  atLeast?: string;
}

/** By key: `ctxSize` is `--ctx-size`. */
export type OptionTable = Readonly<Record<string, OptionSpec>>;

type ValueOf<Spec> = Spec extends { kind: "boolean" }
  ? boolean | (Spec extends { default: boolean } ? never : undefined)
  : Spec extends { kind: "list" }
    ? string[]
    : Spec extends { kind: "parts"; parts: infer Parts }
      ? Record<keyof Parts, number>
      : Spec extends { kind: "integer" | "number" }
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

/** `-c`, `--ctx-size` and its aliases. */
export function givenNames(key: string, { alias = [], short }: OptionSpec): string[] {
  const names = [flagOf(key), ...alias].map((name) => `--${name}`);
  return short === undefined ? names : [`-${short}`, ...names];
}

/** With `--no-…` of a boolean. */
export function flagNames(key: string, spec: OptionSpec): string[] {
  const names = givenNames(key, spec);
  return spec.kind === "boolean" ? [...names, `--no-${flagOf(key)}`] : names;
}

type WithGroup<Options> = { [Key in keyof Options]: Options[Key] & { group: string } };

/** The options of one part of the help; of other parts, too. */
export function inGroup<const Options extends object>(
  group: string,
  options: Options,
): WithGroup<Options> {
  const entries = Object.entries(options).map(([key, spec]) => [key, { ...spec, group }]);
  return Object.fromEntries(entries) as WithGroup<Options>;
}
