/** Reads a value of a configuration file; every failure names the file and the key. */

import { FermataError } from "../errors.ts";
import { nearNames } from "../tools/near-names.ts";

export class ConfigReader {
  readonly value: unknown;
  readonly #file: string;
  /** In dotted form; "" for the file as a whole. */
  readonly #key: string;

  constructor(file: string, value: unknown = undefined, key = "") {
    this.#file = file;
    this.value = value;
    this.#key = key;
  }

  fails(problem: string, cause?: unknown): FermataError {
    const place = this.#key === "" ? this.#file : `${this.#file}: "${this.#key}"`;
    return new FermataError(
      "agents_invalid",
      `Agents file ${place} ${problem}${problem.endsWith("?") ? "" : "."}`,
      {
        param: this.#key === "" ? undefined : this.#key,
        cause,
      },
    );
  }

  /** What stands under a key, maybe nothing. */
  at(key: string): ConfigReader {
    const path = this.#key === "" ? key : `${this.#key}.${key}`;
    return new ConfigReader(this.#file, this.#object()[key], path);
  }

  has(key: string): boolean {
    return this.#object()[key] !== undefined;
  }

  /** @throws FermataError agents_invalid: there is a key that nobody reads */
  knows(...keys: readonly string[]): void {
    const unknown = Object.keys(this.#object()).find((key) => !keys.includes(key));
    if (unknown === undefined) return;
    const [near] = nearNames(unknown, keys);
    const hint = near === undefined ? `the keys are ${keys.join(", ")}` : `did you mean "${near}"?`;
    throw this.at(unknown).fails(`is not known; ${hint}`);
  }

  /** Of an object, which may be absent. */
  entries(): [string, ConfigReader][] {
    return Object.keys(this.#object()).map((key) => [key, this.at(key)]);
  }

  /** @throws if it is absent and has no fallback */
  text(key: string, fallback?: string): string {
    const { value } = this.at(key);
    if (value === undefined && fallback !== undefined) return fallback;
    if (typeof value === "string" && (value !== "" || fallback !== undefined)) return value;
    throw this.at(key).fails(value === undefined ? "is missing" : "must be a text, not empty");
  }

  /** One of `names`. @param missing what to do if there is none */
  name(key: string, names: readonly string[], missing: string): string {
    if (!this.has(key)) throw this.at(key).fails(`is missing; ${missing}`);
    const name = this.text(key);
    if (names.includes(name)) return name;
    throw this.at(key).fails(`names no agent: "${name}"; there are ${names.join(", ")}`);
  }

  /** Some of `names`. */
  names(key: string, names: readonly string[]): string[] {
    const found = this.at(key).texts("an array of names of agents");
    const unknown = found.find((name) => !names.includes(name));
    if (unknown === undefined) return [...new Set(found)];
    throw this.at(key).fails(
      `names no other agent: "${unknown}"; there ${names.length === 0 ? "is none" : `are ${names.join(", ")}`}`,
    );
  }

  /** This value. */
  texts(wanted: string): string[] {
    const { value } = this;
    if (Array.isArray(value) && value.every((item) => typeof item === "string" && item !== ""))
      return value as string[];
    throw this.fails(`must be ${wanted}`);
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

  #object(): Readonly<Record<string, unknown>> {
    const { value } = this;
    if (value === undefined) return {};
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
    throw this.fails("must be an object");
  }
}
