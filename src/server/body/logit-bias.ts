/** `logit_bias`: OpenAI's object, or llama-server's list of pairs. A token is named by its id or by a text that has it. */

import type { Sampling } from "../../engine/types.ts";
import { type Type, fieldError } from "./field.ts";
import { isNumber, tokenId } from "./prompt-inputs.ts";
import { dictionary, either, list, mapped, number, text } from "./values.ts";

/** Each choice has a copy. */
const maxBiases = 10_000;
/** Each is tokenized by itself. */
const maxTexts = 1000;
const maxBiasedText = 1000;
const maxBias = 100;
const banningBias = -100;
const remedy = 'Send {"<token id>": <bias>} or [[<token id or text>, <bias>]]';

export type LogitBias = Pick<Sampling, "logitBias" | "textBias">;
type Entry = [token: number | string, bias: number];

const amount = number(-maxBias, maxBias);
const bias: Type<number> = {
  schema: { anyOf: [amount.schema, { const: false }] },
  remedy: `Send a number from -${maxBias} to ${maxBias}, or false to ban the token`,
  read: (value, path, reading) =>
    value === false ? banningBias : amount.read(value, path, reading),
};
const biasedText = text({ min: 1, max: maxBiasedText });
const token = either({ number: tokenId, string: biasedText }, "a token id or a text", remedy);

const pair: Type<Entry> = {
  schema: { type: "array", prefixItems: [token.schema, bias.schema], minItems: 2, maxItems: 2 },
  remedy,
  read(value, path, reading) {
    if (!Array.isArray(value) || value.length !== 2)
      throw fieldError("invalid_type", path, "must be a pair of a token and its bias", remedy);
    const [named, given] = value as unknown[];
    return [token.read(named, path, reading), bias.read(given, path, reading)];
  },
};

/** A key of digits is a token id. */
const byName = mapped(
  dictionary(bias, { max: maxBiases, remedy: `Send at most ${maxBiases} tokens` }),
  (biases, path, reading) =>
    Object.entries(biases).map(([key, given]): Entry => {
      const named = /^-?\d{1,15}$/.test(key) ? Number(key) : key;
      return [token.read(named, `${path}.${key.slice(0, 64)}`, reading), given];
    }),
);
const pairs = list(pair, { max: maxBiases, remedy: `Send at most ${maxBiases} pairs` });

export const logitBias: Type<LogitBias> = mapped(
  either({ object: byName, array: pairs }, "an object or an array", remedy),
  (entries, path): LogitBias => {
    const byId = entries.filter((entry): entry is [number, number] => isNumber(entry[0]));
    const byText = entries.filter((entry): entry is [string, number] => !isNumber(entry[0]));
    if (byText.length > maxTexts) {
      const advice = `Send at most ${maxTexts} texts, and the others as token ids (POST /tokenize)`;
      throw fieldError("invalid_value", path, `names ${byText.length} tokens by texts`, advice);
    }
    return { logitBias: byId, ...(byText.length === 0 ? {} : { textBias: byText }) };
  },
);
