/** Fields that all endpoints have which generate: how tokens are drawn, what form they have. */

import { boolean, count, list, number, object, oneOf, record, string } from "./json-schema.ts";

const bias = oneOf(number(-100, 100), { const: false });
const logitBias = oneOf(
  { type: "object", additionalProperties: bias },
  list({
    type: "array",
    prefixItems: [oneOf({ type: "integer", minimum: 0 }, { type: "string", minLength: 1 }), bias],
    minItems: 2,
    maxItems: 2,
  }),
);
/** -1 is none. */
export const tokenLimit = oneOf(count, { const: -1 });
export const sampling = {
  temperature: number(0, 2),
  top_p: number(0, 1),
  top_k: { type: "integer", minimum: -1 },
  min_p: number(0, 1),
  seed: { type: "integer" },
  frequency_penalty: number(-2, 2),
  presence_penalty: number(-2, 2),
  logit_bias: logitBias,
  typical_p: number(0, 1),
  top_n_sigma: number(-1, 1000),
  repeat_penalty: number(0.01, 100),
  repetition_penalty: number(0.01, 100),
  repeat_last_n: { type: "integer", minimum: -1 },
  xtc_probability: number(0, 1),
  xtc_threshold: number(0, 1),
  dynatemp_range: number(0, 100),
  dynatemp_exponent: number(0, 100),
  dry_multiplier: number(0, 100),
  dry_base: number(1, 100),
  dry_allowed_length: { type: "integer", minimum: 0 },
  dry_penalty_last_n: { type: "integer", minimum: -1 },
  dry_sequence_breakers: list({ type: "string", minLength: 1, maxLength: 40 }, { maxItems: 16 }),
  mirostat: { type: "integer", minimum: 0, maximum: 2 },
  mirostat_tau: number(0, 100),
  mirostat_eta: number(0, 1),
  min_keep: { type: "integer", minimum: 0 },
  ignore_eos: boolean,
};
export const guided = {
  guided_json_schema: object,
  guided_json: object,
  guided_regex: string,
  guided_choice: list(string, { minItems: 1, maxItems: 1000 }),
  guided_grammar: string,
  json_schema: object,
  grammar: string,
  structured_outputs: oneOf(
    record({ json: object }, ["json"]),
    record({ regex: string }, ["regex"]),
    record({ choice: list(string, { minItems: 1, maxItems: 1000 }) }, ["choice"]),
    record({ grammar: string }, ["grammar"]),
    record({ json_object: boolean }, ["json_object"]),
  ),
  n_predict: tokenLimit,
};
export const responseFormat = record(
  {
    type: { type: "string", enum: ["text", "json_object", "json_schema"] },
    json_schema: object,
    schema: object,
  },
  ["type"],
);
