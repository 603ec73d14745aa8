/** How tokens are drawn and when they end: OpenAI's fields, and llama-server's under its names. */

import type { DrySampling, Sampling } from "../../engine/types.ts";
import { fieldError, isAbsent, isObject, kindOf, readNumber, type JsonObject } from "./fields.ts";

export interface SamplingLimits {
  /** What the served model samples with unless told otherwise; its seed is used when none is given. */
  sampling: Sampling;
  contextSize: number;
  vocabularySize: number;
}

const maxStops = 16;
/** Each sequence has a table of that length. */
const maxStopLength = 1000;
const stopRemedy = `Send up to ${maxStops} strings of 1 to ${maxStopLength} characters`;
/** Each choice has a copy. */
const maxBiases = 10_000;
const seedRange = 2 ** 32;
const maxInt32 = 2 ** 31 - 1;
const maxSequenceBreakers = 16;
const maxSequenceBreakerLength = 40;
const llamaSequenceBreakers = ["\n", ":", '"', "*"];

export function readSampling(body: JsonObject, limits: SamplingLimits): Sampling {
  const defaults = limits.sampling;
  const number = <Fallback>(field: string, min: number, max: number, fallback: Fallback) =>
    readNumber(body, field, { min, max }, fallback);
  const integer = <Fallback>(field: string, min: number, max: number, fallback: Fallback) =>
    readNumber(body, field, { min, max, integer: true }, fallback);
  const { MIN_SAFE_INTEGER, MAX_SAFE_INTEGER } = Number;
  const seed = integer("seed", MIN_SAFE_INTEGER, MAX_SAFE_INTEGER, defaults.seed);
  const sampling: Sampling = {
    ...defaults,
    temperature: number("temperature", 0, 2, defaults.temperature),
    topP: aboveZero(number("top_p", 0, 1, defaults.topP)),
    // -1 means "all" to some clients, 0 to the sampler.
    topK: Math.max(integer("top_k", -1, maxInt32, defaults.topK), 0),
    minP: number("min_p", 0, 1, defaults.minP),
    typicalP: aboveZero(number("typical_p", 0, 1, defaults.typicalP)),
    repeatPenalty: number("repeat_penalty", 0.01, 100, defaults.repeatPenalty),
    frequencyPenalty: number("frequency_penalty", -2, 2, defaults.frequencyPenalty),
    presencePenalty: number("presence_penalty", -2, 2, defaults.presencePenalty),
    penaltyLastN: lookBack(
      integer("repeat_last_n", -1, maxInt32, defaults.penaltyLastN),
      limits.contextSize,
    ),
    seed: ((seed % seedRange) + seedRange) % seedRange,
    logitBias: readLogitBias(body["logit_bias"], limits.vocabularySize),
  };
  const mirostat = integer("mirostat", 0, 2, undefined);
  const extras: Partial<Sampling> = {
    // -1 is llama-server's "off".
    topNSigma: offBelowZero(number("top_n_sigma", -1, 1000, undefined)),
    xtcProbability: number("xtc_probability", 0, 1, undefined),
    xtcThreshold: number("xtc_threshold", 0, 1, undefined),
    dynatempRange: number("dynatemp_range", 0, 100, undefined),
    dynatempExponent: number("dynatemp_exponent", 0, 100, undefined),
    mirostat: mirostat as 0 | 1 | 2 | undefined,
    mirostatTau: number("mirostat_tau", 0, 100, undefined),
    mirostatEta: number("mirostat_eta", 0, 1, undefined),
    minKeep: atLeastOne(integer("min_keep", 0, maxInt32, undefined), limits.vocabularySize),
    dry: readDry(body, limits.contextSize),
  };
  const given = Object.entries(extras).filter(([, value]) => value !== undefined);
  return { ...sampling, ...Object.fromEntries(given) };
}

/** Zero keeps the likeliest token alone, and so does the smallest number above. */
function aboveZero(probability: number): number {
  return Math.max(probability, 1e-6);
}

function offBelowZero(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.max(value, 0);
}

function atLeastOne(value: number | undefined, most: number): number | undefined {
  return value === undefined ? undefined : Math.min(Math.max(value, 1), most);
}

/** -1 means the whole context to llama-server. */
function lookBack(tokens: number, contextSize: number): number {
  return tokens < 0 ? contextSize : Math.min(tokens, contextSize);
}

/** llama-server's defaults; undefined when the penalty is off. */
function readDry(body: JsonObject, contextSize: number): DrySampling | undefined {
  const integer = { min: 0, max: maxInt32, integer: true };
  const multiplier = readNumber(body, "dry_multiplier", { min: 0, max: 100 }, 0);
  const base = readNumber(body, "dry_base", { min: 1, max: 100 }, 1.75);
  const allowedLength = readNumber(body, "dry_allowed_length", integer, 2);
  const lastN = readNumber(body, "dry_penalty_last_n", { ...integer, min: -1 }, 64);
  const sequenceBreakers = readSequenceBreakers(body["dry_sequence_breakers"]);
  if (multiplier === 0) return undefined;
  return {
    multiplier,
    base,
    allowedLength: Math.min(allowedLength, contextSize),
    penaltyLastN: lookBack(lastN, contextSize),
    sequenceBreakers,
  };
}

function readSequenceBreakers(value: unknown): string[] {
  if (isAbsent(value)) return llamaSequenceBreakers;
  const field = "dry_sequence_breakers";
  const remedy = `Send up to ${maxSequenceBreakers} strings of 1 to ${maxSequenceBreakerLength} characters`;
  if (!Array.isArray(value))
    throw fieldError("invalid_type", field, `must be an array, not ${kindOf(value)}`, remedy);
  if (value.length > maxSequenceBreakers)
    throw fieldError("invalid_value", field, `has ${value.length} entries`, remedy);
  return value.map((text: unknown, index) => {
    const entry = `${field}[${index}]`;
    if (typeof text !== "string")
      throw fieldError("invalid_type", entry, `must be a string, not ${kindOf(text)}`, remedy);
    if (text === "" || text.length > maxSequenceBreakerLength || text.includes("\0"))
      throw fieldError("invalid_value", entry, "is empty, too long or has a NUL", remedy);
    return text;
  });
}

function readLogitBias(value: unknown, vocabularySize: number): [number, number][] {
  if (isAbsent(value)) return [];
  if (!isObject(value)) {
    const remedy = 'Send {"<token id>": <bias>}';
    throw fieldError(
      "invalid_type",
      "logit_bias",
      `must be an object, not ${kindOf(value)}`,
      remedy,
    );
  }
  const entries = Object.entries(value);
  if (entries.length > maxBiases) {
    const remedy = `Send at most ${maxBiases}`;
    throw fieldError("invalid_value", "logit_bias", `has ${entries.length} entries`, remedy);
  }
  return entries.map(([key, bias]) => {
    const field = `logit_bias.${key.slice(0, 40)}`;
    const token = /^\d{1,9}$/.test(key) ? Number(key) : -1;
    if (token < 0 || token >= vocabularySize) {
      throw fieldError(
        "invalid_value",
        field,
        "is not a token of the model",
        `Send token ids from 0 to ${vocabularySize - 1}`,
      );
    }
    if (typeof bias !== "number" || !(bias >= -100 && bias <= 100)) {
      const code = typeof bias === "number" ? "invalid_value" : "invalid_type";
      throw fieldError(code, field, "is not a legal bias", "Send a number from -100 to 100");
    }
    return [token, bias];
  });
}

export function readStop(value: unknown): string[] {
  if (isAbsent(value)) return [];
  return typeof value === "string" ? [readStopText(value, "stop")] : readStops(value, "stop");
}

export function readStops(value: unknown, field: string): string[] {
  if (!Array.isArray(value))
    throw fieldError("invalid_type", field, `must be an array, not ${kindOf(value)}`, stopRemedy);
  if (value.length > maxStops)
    throw fieldError("invalid_value", field, `has ${value.length} entries`, stopRemedy);
  return value.map((stop: unknown, index) => readStopText(stop, `${field}[${index}]`));
}

function readStopText(stop: unknown, field: string): string {
  if (typeof stop !== "string")
    throw fieldError("invalid_type", field, `must be a string, not ${kindOf(stop)}`, stopRemedy);
  if (stop === "") throw fieldError("invalid_value", field, "is empty", stopRemedy);
  if (stop.length > maxStopLength)
    throw fieldError("invalid_value", field, `has ${stop.length} characters`, stopRemedy);
  return stop;
}

/** More than the context holds is no error: agents send one fixed number to every model. */
export function readMaxTokens(body: JsonObject, contextSize: number): number | undefined {
  const range = { min: 1, max: Number.MAX_SAFE_INTEGER, integer: true };
  const legacy = readNumber(body, "max_tokens", range, undefined);
  const current = readNumber(body, "max_completion_tokens", range, undefined);
  const limit = current ?? legacy;
  return limit === undefined ? undefined : Math.min(limit, contextSize);
}
