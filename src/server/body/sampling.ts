/**
 * How tokens are drawn: OpenAI's fields, and those of llama-server and vLLM. The engine takes at least these ranges;
 * test/integrity/sampling-ranges.test.ts compares them.
 */

import type { DrySampling, Sampling } from "../../engine/types.ts";
import { ignored, optional, refused, type FieldTable, type ValuesOf } from "./field.ts";
import { fieldError } from "./field-error.ts";
import { logitBias } from "./logit-bias.ts";
import { boolean, integer, list, mapped, number, text } from "./values.ts";

export interface SamplingLimits {
  /** What the served model samples with unless told otherwise; its seed is used when none is given. */
  sampling: Sampling;
  contextSize: number;
  vocabularySize: number;
  /** Of an answer whose request does not say. Default: to the end of the context. */
  maxTokens?: number | undefined;
}

const seedRange = 2 ** 32;
const maxInt32 = 2 ** 31 - 1;
const maxBreakers = 16;
const breakerRemedy = `Send up to ${maxBreakers} strings of 1 to 40 characters`;
const breaker = mapped(text({ min: 1, max: 40, remedy: breakerRemedy }), (value, path) => {
  if (!value.includes("\0")) return value;
  throw fieldError("invalid_value", path, "has a NUL", breakerRemedy);
});
const repeatPenalty = number(0.01, 100);

/** OpenAI's. */
export const basicSampling = {
  temperature: optional(number(0, 100), "0 takes the likeliest token"),
  top_p: optional(number(0, 1)),
  seed: optional(
    integer(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
    "same seed, same batches, same tokens: see above; -1 draws one",
  ),
  frequency_penalty: optional(number(-2, 2)),
  presence_penalty: optional(number(-2, 2)),
  logit_bias: optional(
    logitBias,
    "up to 10000 tokens, by id or by a text that has them; an object or pairs; `false` bans",
  ),
} satisfies FieldTable;

/** llama-server's, which every endpoint that generates takes. Without a value, the model's default holds. */
export const llamaSampling = {
  top_k: optional(integer(-1, maxInt32), "-1 and 0 turn it off"),
  min_p: optional(number(0, 1)),
  typical_p: optional(number(0, 1)),
  top_n_sigma: optional(number(-1, 1000), "-1 and 0 turn it off"),
  repeat_penalty: optional(repeatPenalty),
  repetition_penalty: optional(repeatPenalty, "the same under vLLM's name"),
  repeat_last_n: optional(
    integer(-1, maxInt32),
    "tokens that the penalties look back on; -1 is the context",
  ),
  xtc_probability: optional(number(0, 1)),
  xtc_threshold: optional(number(0, 1)),
  dynatemp_range: optional(number(0, 100)),
  dynatemp_exponent: optional(number(0, 100)),
  dry_multiplier: optional(number(0, 100), "0 turns DRY off", 0),
  dry_base: optional(number(1, 100), "", 1.75),
  dry_allowed_length: optional(integer(0, maxInt32), "", 2),
  dry_penalty_last_n: optional(integer(-1, maxInt32), "-1 is the context", 64),
  dry_sequence_breakers: optional(list(breaker, { max: maxBreakers, remedy: breakerRemedy }), "", [
    "\n",
    ":",
    '"',
    "*",
  ]),
  mirostat: optional(integer(0, 2), "in place of the other filters"),
  mirostat_tau: optional(number(0, 100)),
  mirostat_eta: optional(number(0, 1)),
  min_keep: optional(integer(0, maxInt32)),
  ignore_eos: optional(
    boolean,
    "`true`: end tokens are banned; a limit, a stop string or a form ends the text",
    false,
  ),
  samplers: ignored("has no effect: the order is llama-server's default"),
  cache_prompt: ignored("has no effect: every prefix is cached", (value) => value === true),
  adaptive_target: refused(
    "asks for a sampler that is not there",
    "Leave it out",
    (value) => typeof value === "number" && value < 0,
  ),
} satisfies FieldTable;

export const samplingFields = { ...basicSampling, ...llamaSampling };

type SamplingValues = Partial<ValuesOf<typeof samplingFields>>;

/** @param given of the fields that the wire has */
export function readSampling(given: SamplingValues, limits: SamplingLimits): Sampling {
  const defaults = limits.sampling;
  const {
    temperature = defaults.temperature,
    top_p: topP = defaults.topP,
    top_k: topK = defaults.topK,
    min_p: minP = defaults.minP,
    typical_p: typicalP = defaults.typicalP,
    frequency_penalty: frequencyPenalty = defaults.frequencyPenalty,
    presence_penalty: presencePenalty = defaults.presencePenalty,
    repeat_last_n: lastN = defaults.penaltyLastN,
    seed = defaults.seed,
    logit_bias: bias = { logitBias: [] },
  } = given;
  const sampling: Sampling = {
    ...defaults,
    temperature,
    topP: aboveZero(topP),
    // -1 means "all" to some clients, 0 to the sampler.
    topK: Math.max(topK, 0),
    minP,
    typicalP: aboveZero(typicalP),
    repeatPenalty: repeatPenaltyOf(given) ?? defaults.repeatPenalty,
    frequencyPenalty,
    presencePenalty,
    penaltyLastN: lookBack(lastN, limits.contextSize),
    // -1 asks llama-server to draw one.
    seed: seed === -1 ? defaults.seed : ((seed % seedRange) + seedRange) % seedRange,
    ...bias,
  };
  const { top_n_sigma: sigma, min_keep: minKeep } = given;
  const extras: Partial<Sampling> = {
    // -1 is llama-server's "off".
    topNSigma: sigma === undefined ? undefined : Math.max(sigma, 0),
    xtcProbability: given.xtc_probability,
    xtcThreshold: given.xtc_threshold,
    dynatempRange: given.dynatemp_range,
    dynatempExponent: given.dynatemp_exponent,
    mirostat: given.mirostat as 0 | 1 | 2 | undefined,
    mirostatTau: given.mirostat_tau,
    mirostatEta: given.mirostat_eta,
    minKeep:
      minKeep === undefined ? undefined : Math.min(Math.max(minKeep, 1), limits.vocabularySize),
    dry: dryOf(given, limits.contextSize),
    ignoresEnd: given.ignore_eos || undefined,
  };
  const wanted = Object.entries(extras).filter(([, value]) => value !== undefined);
  return { ...sampling, ...Object.fromEntries(wanted) };
}

/** Zero keeps the likeliest token alone, and so does the smallest number above. */
function aboveZero(probability: number): number {
  return Math.max(probability, 1e-6);
}

/** -1 means the whole context to llama-server. */
function lookBack(tokens: number, contextSize: number): number {
  return tokens < 0 ? contextSize : Math.min(tokens, contextSize);
}

/** Undefined when the penalty is off. */
function dryOf(given: SamplingValues, contextSize: number): DrySampling | undefined {
  const { dry_multiplier: multiplier = 0, dry_base: base = 1 } = given;
  const { dry_allowed_length: length = 0, dry_penalty_last_n: lastN = 0 } = given;
  const { dry_sequence_breakers: sequenceBreakers = [] } = given;
  if (multiplier === 0) return undefined;
  return {
    multiplier,
    base,
    allowedLength: Math.min(length, contextSize),
    penaltyLastN: lookBack(lastN, contextSize),
    sequenceBreakers,
  };
}

/** llama-server's name and vLLM's. */
function repeatPenaltyOf(given: SamplingValues): number | undefined {
  const { repeat_penalty: penalty, repetition_penalty: other } = given;
  if (penalty === undefined || other === undefined || other === penalty) return penalty ?? other;
  const problem = "contradicts repeat_penalty";
  throw fieldError("invalid_value", "repetition_penalty", problem, "Send one of the two");
}
