/**
 * Fields of every endpoint that generates: model, stream, token limits, stop strings and sampling. The names are those of
 * OpenAI, llama-server and vLLM. The engine accepts at least these ranges; test/integrity/sampling-ranges.test.ts compares them.
 */

import type { DrySampling, Sampling } from "../../engine/types.ts";
import {
  asksFor,
  ignored,
  optional,
  refused,
  type FieldTable,
  type ValuesOf,
  fieldError,
  type Type,
  unless,
} from "./field.ts";
import { fieldsNotHere, llamaFields } from "./fields-not-here.ts";
import { keepAliveField } from "./keep-alive.ts";
import { logitBias } from "./logit-bias.ts";
import { boolean, integer, list, mapped, number, text, object, either } from "./values.ts";
import { documentFields } from "./guidance.ts";
import { tokenRuleFields, tokenRulesOf } from "./token-rules.ts";

export interface SamplingLimits {
  /** The served model's default sampling, with the seed for requests that give none. */
  sampling: Sampling;
  contextSize: number;
  vocabularySize: number;
  /** Token limit of an answer whose request sets none. Default: to the end of the context. */
  maxTokens?: number | undefined;
}

/** Those of 64 bits have lost their lowest ones as JSON numbers: the others count. */
function seedOf(given: number): number {
  const seed = BigInt(given);
  const mixed = Number.isSafeInteger(given) ? seed : seed ^ (seed >> 32n);
  return Number(BigInt.asUintN(32, mixed));
}

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
    // Clients draw 64 bits, with a sign and without.
    integer(-(2 ** 64), 2 ** 64),
    "same seed, same batches, same tokens; -1 draws one",
  ),
  frequency_penalty: optional(number(-100, 100)),
  presence_penalty: optional(number(-100, 100)),
  logit_bias: optional(
    logitBias,
    "up to 10000 tokens, by id or (1000 at most) by a text that has them; an object or pairs; `false` bans",
  ),
} satisfies FieldTable;

/** llama-server's sampling fields. Without a value, the model's default is used. */
const llamaSampling = {
  top_k: optional(integer(-maxInt32, maxInt32), "0 and less turn it off"),
  min_p: optional(number(0, 1)),
  typical_p: optional(number(0, 1)),
  top_n_sigma: optional(number(-1000, 1000), "0 and less turn it off"),
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
  cache_prompt: ignored("has no effect: every prefix is cached", unless(true)),
  adaptive_target: refused(
    "names a sampler that does not exist",
    "Leave it out",
    (value) => typeof value === "number" && value < 0,
  ),
} satisfies FieldTable;

export const samplingFields = { ...basicSampling, ...llamaSampling };

type SamplingValues = Partial<ValuesOf<typeof samplingFields & typeof tokenRuleFields>>;

/** @param given values of the wire's fields */
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
    seed: seed === -1 ? defaults.seed : seedOf(seed),
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
    rules: asksFor(tokenRuleFields, given) ? tokenRulesOf(given) : undefined,
  };
  const wanted = Object.entries(extras).filter(([, value]) => value !== undefined);
  return { ...sampling, ...Object.fromEntries(wanted) };
}

/** Zero keeps only the likeliest token, and so does the smallest number above zero. */
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

/** llama-server and vLLM have different names for it. */
function repeatPenaltyOf(given: SamplingValues): number | undefined {
  const { repeat_penalty: penalty, repetition_penalty: other } = given;
  if (penalty === undefined || other === undefined || other === penalty) return penalty ?? other;
  const problem = "contradicts repeat_penalty";
  throw fieldError("invalid_value", "repetition_penalty", problem, "Send one of the two");
}

/** OpenAI's limit. */
export const maxChoices = 128;
const maxTopLogprobs = 20;

export const modelField = optional(
  text({ remedy: "Send a model's name or leave it out" }),
  "a single model answers to every name, and an unknown one is logged; with `--models-dir` an unknown one is a 404",
);
export const streamField = optional(boolean, "server-sent events", false);
export const choicesField = optional(integer(1, maxChoices), "choice `i` draws with `seed + i`", 1);
/** @param n answers to each prompt */
export function checkChoices(promptCount: number, n: number): void {
  const count = promptCount * n;
  if (count <= maxChoices) return;
  const problem = `asks for ${count} choices for ${promptCount} prompts`;
  throw fieldError("invalid_value", "n", problem, `Ask for at most ${maxChoices} in all`);
}

export const topLogprobs = integer(0, maxTopLogprobs);
export const closeAtLimitField = optional(
  boolean,
  "`true`: a guided answer ends on a valid path before the token limit",
  false,
);
const streamOptions = {
  include_usage: optional(boolean, "", false),
  continuous_usage_stats: optional(boolean, "", false),
  include_obfuscation: ignored("has no effect", unless(false)),
} satisfies FieldTable;
export const streamOptionsField = optional(
  object(streamOptions, 'Send {"include_usage": true}'),
  "`include_usage`: the last chunk has the usage; `continuous_usage_stats`, vLLM's: with it, each chunk has the counts so far. A 400 without `stream`",
);

/** llama-server's, of streams. The last event has the times unasked. */
export const timesFields = {
  timings_per_token: optional(boolean, "`true`: every event of a stream has `timings`", false),
  return_progress: optional(
    boolean,
    "`true`: a stream has events with `prompt_progress` while the prompt is read",
    false,
  ),
} satisfies FieldTable;

/** Which times a stream tells before its end. */
export interface TimesWanted {
  perToken: boolean;
  progress: boolean;
}

export function timesWanted(given: ValuesOf<typeof timesFields>): TimesWanted {
  return { perToken: given.timings_per_token, progress: given.return_progress };
}

const cacheSaltField = optional(
  text({ min: 1, max: 1000, remedy: "Send a text of 1 to 1000 characters, or leave it out" }),
  "the prompt cache is shared only with requests of the same key and the same salt",
);

export const generationFields = {
  ...samplingFields,
  ...tokenRuleFields,
  cache_salt: cacheSaltField,
  keep_alive: keepAliveField,
  ...documentFields,
  ...fieldsNotHere,
  ...llamaFields,
};

export interface UsageWanted {
  /** The last chunk of a stream has the usage. */
  atEnd: boolean;
  /** Each chunk has the counts so far. */
  continuous: boolean;
}

/** @throws FermataError invalid_value: there is no stream */
export function usageWanted(given: {
  stream: boolean;
  stream_options: ValuesOf<typeof streamOptions> | undefined;
}): UsageWanted {
  const { stream, stream_options: options } = given;
  if (options === undefined) return { atEnd: false, continuous: false };
  if (!stream) {
    const remedy = 'Send "stream": true, or leave it out';
    throw fieldError("invalid_value", "stream_options", "is only for streams", remedy);
  }
  const { include_usage: atEnd, continuous_usage_stats: continuous } = options;
  return { atEnd, continuous: atEnd && continuous };
}

/** What the engine takes; some clients send one for every name in a group chat. */
const maxStops = 256;
/** Each choice of each sequence has a table of that length for every string. */
const maxStopLength = 1000;
const maxStopCharacters = 16_000;
const stopRemedy = `Send up to ${maxStops} strings of up to ${maxStopLength} characters, ${maxStopCharacters} in all`;
const stopText = text({ max: maxStopLength, remedy: stopRemedy });
const stopEntry: Type<string> = {
  ...stopText,
  read: (value, path, reading) => (value === null ? "" : stopText.read(value, path, reading)),
};

/** Empty strings and nulls stop nothing and are passed over, as at llama-server. */
export const stopList = mapped(
  list(stopEntry, { max: maxStops, remedy: stopRemedy }),
  (given, path) => {
    const stops = given.filter((stop) => stop !== "");
    const characters = stops.join("").length;
    if (characters <= maxStopCharacters) return stops;
    throw fieldError("invalid_value", path, `has ${characters} characters`, stopRemedy);
  },
);

export const stopLimits = `up to ${maxStops} strings, ${maxStopCharacters} characters in all`;
export const stopField = optional(
  either(
    { string: mapped(stopText, (stop) => (stop === "" ? [] : [stop])), array: stopList },
    "an array",
    stopRemedy,
  ),
  stopLimits,
  [],
);

/** -1 is no limit, as llama-server's clients ask for it; 0 reads the prompt into the cache and answers nothing. */
export const tokenLimit = integer(-1);

export const maxTokensFields = {
  max_completion_tokens: optional(
    tokenLimit,
    "-1 is no limit; 0 reads the prompt into the cache and answers nothing; at most the context",
  ),
  max_tokens: optional(tokenLimit, "the same under its old name; `max_completion_tokens` wins"),
  n_predict: optional(tokenLimit, "the same under llama-server's name; the others win"),
} satisfies FieldTable;

interface MaxTokens {
  max_completion_tokens?: number | undefined;
  max_tokens?: number | undefined;
  n_predict?: number | undefined;
}

/**
 * Undefined: only the context limits the answer. A limit above the context is no error, because agents send one fixed
 * number to every model.
 */
export function maxTokensOf(
  given: MaxTokens,
  { contextSize, maxTokens }: Pick<SamplingLimits, "contextSize" | "maxTokens">,
  otherwise?: number,
): number | undefined {
  const { max_completion_tokens, max_tokens, n_predict } = given;
  const limit = max_completion_tokens ?? max_tokens ?? n_predict ?? maxTokens ?? otherwise;
  return limit === undefined || limit === -1 ? undefined : Math.min(limit, contextSize);
}
