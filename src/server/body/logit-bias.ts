/** `logit_bias`: OpenAI's object, or llama-server's list of pairs. A token is named by its id or by a text that has it. */

import { banningBias } from "../../engine/sampling-bias.ts";
import type { Sampling } from "../../engine/types.ts";
import type { Type } from "./field.ts";
import { fieldError, isObject, kindOf } from "./fields.ts";

/** Each choice has a copy. */
const maxBiases = 10_000;
const maxBiasedText = 1000;
const maxBias = 100;
const remedy = 'Send {"<token id>": <bias>} or [[<token id or text>, <bias>]]';

const bias = { anyOf: [{ type: "number", minimum: -maxBias, maximum: maxBias }, { const: false }] };
const token = {
  anyOf: [
    { type: "integer", minimum: 0 },
    { type: "string", minLength: 1, maxLength: maxBiasedText },
  ],
};

export type LogitBias = Pick<Sampling, "logitBias" | "textBias">;
type Entry = [token: number | string, bias: unknown, path: string];

export const logitBias: Type<LogitBias> = {
  schema: {
    anyOf: [
      { type: "object", additionalProperties: bias, maxProperties: maxBiases },
      {
        type: "array",
        items: { type: "array", prefixItems: [token, bias], minItems: 2, maxItems: 2 },
        maxItems: maxBiases,
      },
    ],
  },
  remedy,
  read(value, path, { vocabularySize = 0 }) {
    const entries = entriesOf(value, path);
    if (entries.length > maxBiases) {
      const problem = `has ${entries.length} entries`;
      throw fieldError("invalid_value", path, problem, `Send at most ${maxBiases}`);
    }
    const byId: [number, number][] = [];
    const byText: [string, number][] = [];
    for (const [named, amount, place] of entries) {
      const checked = readBias(amount, place);
      if (typeof named === "string") byText.push([readText(named, place), checked]);
      else byId.push([readToken(named, place, vocabularySize), checked]);
    }
    return { logitBias: byId, ...(byText.length === 0 ? {} : { textBias: byText }) };
  },
};

function entriesOf(value: unknown, path: string): Entry[] {
  if (Array.isArray(value))
    return value.map((pair: unknown, index) => readPair(pair, `${path}[${index}]`));
  if (!isObject(value)) {
    const problem = `must be an object or an array, not ${kindOf(value)}`;
    throw fieldError("invalid_type", path, problem, remedy);
  }
  return Object.entries(value).map(([key, amount]): Entry => {
    const named = /^-?\d{1,15}$/.test(key) ? Number(key) : key;
    return [named, amount, `${path}.${key.slice(0, 40)}`];
  });
}

function readPair(pair: unknown, path: string): Entry {
  const [named, amount, ...others] = Array.isArray(pair) ? (pair as unknown[]) : [];
  const isToken = typeof named === "number" || typeof named === "string";
  if (isToken && others.length === 0) return [named, amount, path];
  throw fieldError("invalid_type", path, "must be a pair of a token and its bias", remedy);
}

function readToken(id: number, path: string, vocabularySize: number): number {
  if (Number.isInteger(id) && id >= 0 && id < vocabularySize) return id;
  const range = `Send token ids from 0 to ${vocabularySize - 1}`;
  throw fieldError("invalid_value", path, "is not a token of the model", range);
}

function readText(named: string, path: string): string {
  if (named !== "" && named.length <= maxBiasedText) return named;
  const problem = `names a text of ${named.length} characters`;
  throw fieldError("invalid_value", path, problem, `Send 1 to ${maxBiasedText} characters`);
}

function readBias(amount: unknown, path: string): number {
  if (amount === false) return banningBias;
  if (typeof amount === "number" && Math.abs(amount) <= maxBias) return amount;
  const code = typeof amount === "number" ? "invalid_value" : "invalid_type";
  const range = `Send a number from -${maxBias} to ${maxBias}, or false to ban it`;
  throw fieldError(code, path, "is not a legal bias", range);
}
