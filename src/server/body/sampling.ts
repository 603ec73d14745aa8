/** How tokens are drawn and when they end: OpenAI's fields, and llama-server's under its names. */

import type { DrySampling, Sampling } from "../../engine/types.ts";
import { banningBias } from "../../engine/sampling-bias.ts";
import {
  fieldError,
  isAbsent,
  isObject,
  kindOf,
  readBoolean,
  readNumber,
  type JsonObject,
} from "./fields.ts";

export interface SamplingLimits {
  /** What the served model samples with unless told otherwise; its seed is used when none is given. */
  sampling: Sampling;
  contextSize: number;
  vocabularySize: number;
  /** Of an answer whose request does not say. Default: to the end of the context. */
  maxTokens?: number | undefined;
}

const maxStops = 16;
/** Each sequence has a table of that length. */
const maxStopLength = 1000;
const stopRemedy = `Send up to ${maxStops} strings of 1 to ${maxStopLength} characters`;
/** Each choice has a copy. */
const maxBiases = 10_000;
const maxBiasedText = 1000;
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
    repeatPenalty: readRepeatPenalty(body, defaults.repeatPenalty),
    frequencyPenalty: number("frequency_penalty", -2, 2, defaults.frequencyPenalty),
    presencePenalty: number("presence_penalty", -2, 2, defaults.presencePenalty),
    penaltyLastN: lookBack(
      integer("repeat_last_n", -1, maxInt32, defaults.penaltyLastN),
      limits.contextSize,
    ),
    // -1 asks llama-server to draw one.
    seed: seed === -1 ? defaults.seed : ((seed % seedRange) + seedRange) % seedRange,
    ...readLogitBias(body["logit_bias"], limits.vocabularySize),
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
    ignoresEnd: readBoolean(body, "ignore_eos", false) || undefined,
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

/** llama-server's name and vLLM's. */
function readRepeatPenalty(body: JsonObject, fallback: number): number {
  const range = { min: 0.01, max: 100 };
  const other = readNumber(body, "repetition_penalty", range, undefined);
  const penalty = readNumber(body, "repeat_penalty", range, other);
  if (other !== undefined && other !== penalty) {
    const problem = "contradicts repeat_penalty";
    throw fieldError("invalid_value", "repetition_penalty", problem, "Send one of the two");
  }
  return penalty ?? fallback;
}

/** OpenAI's object, or llama-server's list of pairs. A token is named by its id or by a text that has it. */
function readLogitBias(
  value: unknown,
  vocabularySize: number,
): Pick<Sampling, "logitBias" | "textBias"> {
  if (isAbsent(value)) return { logitBias: [] };
  const remedy = 'Send {"<token id>": <bias>} or [[<token id or text>, <bias>]]';
  if (!isObject(value) && !Array.isArray(value)) {
    const problem = `must be an object or an array, not ${kindOf(value)}`;
    throw fieldError("invalid_type", "logit_bias", problem, remedy);
  }
  const entries = Array.isArray(value)
    ? value.map((pair: unknown, index) => readPair(pair, `logit_bias[${index}]`, remedy))
    : Object.entries(value).map(([key, bias]): BiasEntry => {
        const token = /^-?\d{1,15}$/.test(key) ? Number(key) : key;
        return [token, bias, `logit_bias.${key.slice(0, 40)}`];
      });
  if (entries.length > maxBiases) {
    const most = `Send at most ${maxBiases}`;
    throw fieldError("invalid_value", "logit_bias", `has ${entries.length} entries`, most);
  }
  const logitBias: [number, number][] = [];
  const textBias: [string, number][] = [];
  for (const [token, bias, field] of entries) {
    const amount = readBias(bias, field);
    if (typeof token === "string") textBias.push([readBiasedText(token, field), amount]);
    else logitBias.push([readToken(token, field, vocabularySize), amount]);
  }
  return { logitBias, ...(textBias.length === 0 ? {} : { textBias }) };
}

type BiasEntry = [token: number | string, bias: unknown, field: string];

function readPair(pair: unknown, field: string, remedy: string): BiasEntry {
  const [token, bias, ...others] = Array.isArray(pair) ? (pair as unknown[]) : [];
  const isToken = typeof token === "number" || typeof token === "string";
  if (!isToken || others.length > 0)
    throw fieldError("invalid_type", field, "must be a pair of a token and its bias", remedy);
  return [token, bias, field];
}

function readToken(token: number, field: string, vocabularySize: number): number {
  if (Number.isInteger(token) && token >= 0 && token < vocabularySize) return token;
  const remedy = `Send token ids from 0 to ${vocabularySize - 1}`;
  throw fieldError("invalid_value", field, "is not a token of the model", remedy);
}

function readBiasedText(text: string, field: string): string {
  if (text !== "" && text.length <= maxBiasedText) return text;
  const problem = `names a text of ${text.length} characters`;
  throw fieldError("invalid_value", field, problem, `Send 1 to ${maxBiasedText} characters`);
}

function readBias(bias: unknown, field: string): number {
  if (bias === false) return banningBias;
  if (typeof bias === "number" && bias >= -100 && bias <= 100) return bias;
  const code = typeof bias === "number" ? "invalid_value" : "invalid_type";
  const remedy = "Send a number from -100 to 100, or false to ban it";
  throw fieldError(code, field, "is not a legal bias", remedy);
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

const limitFields = ["max_completion_tokens", "max_tokens", "n_predict"];

/**
 * Undefined: no limit but the context's, which llama-server's clients ask for with -1. More than the context holds
 * is no error: agents send one fixed number to every model.
 */
export function readMaxTokens(
  body: JsonObject,
  { contextSize, maxTokens }: Pick<SamplingLimits, "contextSize" | "maxTokens">,
  fallback?: number,
): number | undefined {
  const range = { min: -1, max: Number.MAX_SAFE_INTEGER, integer: true };
  const limits = limitFields.map((field) => {
    const limit = readNumber(body, field, range, undefined);
    if (limit !== 0) return limit;
    const remedy = "Send 1 or more, or -1 for no limit";
    throw fieldError("invalid_value", field, "must not be 0", remedy);
  });
  const limit = limits.find((given) => given !== undefined) ?? maxTokens ?? fallback;
  return limit === undefined || limit === -1 ? undefined : Math.min(limit, contextSize);
}
