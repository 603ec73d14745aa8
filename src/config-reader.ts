/** The reader of configuration files. Every failure names the file and the key. */

import { readFileSync } from "node:fs";
import { type ErrorCode, FermataError } from "./errors.ts";
import { isJsonObject } from "./json.ts";
import { nearNames } from "./near-names.ts";

/** What a kind of file is called in messages, and the code of its errors. */
export interface ConfigKind {
  title: string;
  code: ErrorCode;
}

/** @throws FermataError of the kind's code: the file cannot be read, or is not JSON */
export function readConfigFile(kind: ConfigKind, path: string): ConfigReader {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const isMissing = (cause as NodeJS.ErrnoException).code === "ENOENT";
    const problem = isMissing ? "does not exist" : `cannot be read: ${(cause as Error).message}`;
    throw new ConfigReader(kind, path).fails(problem, cause);
  }
  return parseConfig(kind, path, text);
}

/** @throws as `readConfigFile` */
export function parseConfig(kind: ConfigKind, path: string, text: string): ConfigReader {
  try {
    // Editors on Windows write a byte order mark.
    return new ConfigReader(kind, path, JSON.parse(text.replace(/^\uFEFF/, "")));
  } catch (cause) {
    const problem = placed((cause as Error).message, text);
    throw new ConfigReader(kind, path).fails(`is not valid JSON: ${problem}`, cause);
  }
}

/** V8 gives an offset, where it does not quote the place: an editor wants line and column. */
function placed(message: string, text: string): string {
  const offset = / in JSON at position (\d+).*/s.exec(message)?.[1];
  if (offset === undefined) return message;
  const lines = text.slice(0, Number(offset)).split("\n");
  const place = `line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
  return message.replace(/ in JSON at position .*/s, ` at ${place}`);
}

type Values = Readonly<Record<string, unknown>>;

/** A value of a file, with its place. */
export class ConfigReader {
  readonly value: unknown;
  /** In dotted form; "" for the file as a whole. */
  readonly key: string;
  readonly #kind: ConfigKind;
  readonly #file: string;

  constructor(kind: ConfigKind, file: string, value?: unknown, key = "") {
    this.#kind = kind;
    this.#file = file;
    this.value = value;
    this.key = key;
  }

  /** The file, with the key if there is one. */
  get place(): string {
    const { title } = this.#kind;
    return this.key === "" ? `${title}${this.#file}` : `${title}${this.#file}: "${this.key}"`;
  }

  fails(problem: string, cause?: unknown): FermataError {
    const { code } = this.#kind;
    const end = problem.endsWith("?") ? "" : ".";
    const param = this.key === "" ? undefined : this.key;
    return new FermataError(code, `${this.place} ${problem}${end}`, { param, cause });
  }

  /** What stands under a key of this object, maybe nothing. */
  at(key: string): ConfigReader {
    return this.#child(this.object()[key], this.key === "" ? key : `${this.key}.${key}`);
  }

  has(key: string): boolean {
    return this.object()[key] !== undefined;
  }

  /** @param ignored keys that may stand there and that nobody reads @throws: there is another key */
  knows(keys: readonly string[], ignored: readonly string[] = []): void {
    const unknown = Object.keys(this.object()).find((key) => ![...keys, ...ignored].includes(key));
    if (unknown === undefined) return;
    const [near] = nearNames(unknown, keys);
    const hint = near === undefined ? `the keys are ${keys.join(", ")}` : `did you mean "${near}"?`;
    throw this.at(unknown).fails(`is not known; ${hint}`);
  }

  /** Empty where nothing stands. @throws: it is no object */
  object(): Values {
    const { value = {} } = this;
    if (isJsonObject(value)) return value;
    throw this.fails("must be an object");
  }

  entries(): [string, ConfigReader][] {
    return Object.keys(this.object()).map((key) => [key, this.at(key)]);
  }

  /** @throws: it is absent and has no fallback, or empty */
  text(key: string, fallback?: string): string {
    const { value } = this.at(key);
    if (value === undefined && fallback !== undefined) return fallback;
    if (typeof value === "string" && (value !== "" || fallback !== undefined)) return value;
    throw this.at(key).fails(
      value === undefined ? "is missing" : "must be a string that is not empty",
    );
  }

  /** This value, an array of texts. */
  texts(wanted = "an array of strings"): string[] {
    const { value } = this;
    if (!Array.isArray(value)) throw this.fails(`must be ${wanted}`);
    for (const [index, item] of value.entries())
      if (typeof item !== "string")
        throw this.#child(item, `${this.key}[${index}]`).fails("must be a string");
    return value as string[];
  }

  /** This value, texts by name. */
  textsByName(): Record<string, string> {
    for (const [, entry] of this.entries())
      if (typeof entry.value !== "string") throw entry.fails("must be a string");
    return this.object() as Record<string, string>;
  }

  flag(key: string, fallback: boolean): boolean {
    const { value = fallback } = this.at(key);
    if (typeof value === "boolean") return value;
    throw this.at(key).fails("must be true or false");
  }

  integer<Fallback>(key: string, min: number, max: number, fallback: Fallback): number | Fallback {
    const { value } = this.at(key);
    if (value === undefined) return fallback;
    if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max)
      return value;
    throw this.at(key).fails(`must be a whole number from ${min} to ${max}`);
  }

  number(key: string, min: number, max: number): number {
    const { value } = this.at(key);
    if (typeof value === "number" && value >= min && value <= max) return value;
    throw this.at(key).fails(`must be a number from ${min} to ${max}`);
  }

  /**
   * This object with the variables in all texts under `keys` replaced: `${NAME}`, `${env:NAME}`,
   * `${NAME:-default}`. @throws: a variable is not set and has no default
   */
  expanded(keys: readonly string[], env: NodeJS.ProcessEnv): ConfigReader {
    const given = keys.filter((key) => this.has(key));
    const pairs = given.map((key) => [key, this.at(key).#expand(env)]);
    return this.#child({ ...this.object(), ...Object.fromEntries(pairs) }, this.key);
  }

  #expand(env: NodeJS.ProcessEnv): unknown {
    const { value, key } = this;
    if (typeof value === "string") return this.#expandText(value, env);
    if (Array.isArray(value))
      return value.map((item, index) => this.#child(item, `${key}[${index}]`).#expand(env));
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(this.entries().map(([name, item]) => [name, item.#expand(env)]));
  }

  /** As in a shell, an empty variable takes the default. */
  #expandText(text: string, env: NodeJS.ProcessEnv): string {
    const reference = /\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;
    return text.replace(reference, (_whole, name: string, fallback: string | undefined) => {
      const value = env[name];
      if (value !== undefined && (value !== "" || fallback === undefined)) return value;
      if (fallback !== undefined) return fallback;
      throw this.fails(`needs the environment variable ${name}, which is not set`);
    });
  }

  #child(value: unknown, key: string): ConfigReader {
    return new ConfigReader(this.#kind, this.#file, value, key);
  }
}
