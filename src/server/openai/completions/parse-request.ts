/** A body of POST /v1/completions as plain, checked data. Pure. */

import type { Sampling } from "../../../engine/types.ts";
import type { DocumentFormat } from "../../../guidance/types.ts";
import {
  expectBody,
  fieldError,
  isAbsent,
  kindOf,
  readBoolean,
  readNumber,
  type JsonObject,
} from "../fields.ts";
import { completionParameters } from "../parameters/completions.ts";
import { checkParameters } from "../parameters/parameter.ts";
import { readDocument } from "../parse-guidance.ts";
import { maxChoices, maxTopLogprobs, readModel, readStreamOptions } from "../parse-request.ts";
import { readMaxTokens, readSampling, readStop, type SamplingLimits } from "../parse-sampling.ts";
import { parseTokens } from "../parse-tokens.ts";
import type { Warn } from "../warnings.ts";

/** A text is yet to be tokenized. */
export type PromptInput = string | Int32Array;

export interface CompletionRequest {
  model: string | null;
  /** At least one. */
  prompts: PromptInput[];
  /** Answers to each. */
  n: number;
  echo: boolean;
  topLogprobs?: number | undefined;
  sampling: Sampling;
  stop: string[];
  /** Undefined: no limit but the context's. */
  maxTokens: number | undefined;
  /** What form the text shall have. */
  document: DocumentFormat | undefined;
  closeAtLimit: boolean;
  stream: boolean;
  includeUsage: boolean;
}

const maxPrompts = 128;
/** OpenAI's, and what clients of this endpoint count on. */
const defaultMaxTokens = 16;

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function parseCompletionRequest(
  body: unknown,
  limits: SamplingLimits,
  warn: Warn,
): CompletionRequest {
  expectBody(body, 'Send {"prompt": "…"}');
  checkParameters(completionParameters, body, warn);
  const prompts = readInputs(body["prompt"], "prompt", limits.vocabularySize, maxPrompts);
  const n = readNumber(body, "n", { min: 1, max: maxChoices, integer: true }, 1);
  if (prompts.length * n > maxChoices) {
    const problem = `makes ${prompts.length * n} choices of ${prompts.length} prompts`;
    throw fieldError("invalid_value", "n", problem, `Ask for at most ${maxChoices} in all`);
  }
  const stream = readBoolean(body, "stream", false);
  return {
    model: readModel(body),
    prompts,
    n,
    ...readEcho(body),
    sampling: readSampling(body, limits),
    stop: readStop(body["stop"]),
    maxTokens: readMaxTokens(body, limits, defaultMaxTokens),
    document: readDocument(body),
    closeAtLimit: readBoolean(body, "close_at_limit", false),
    stream,
    includeUsage: readStreamOptions(body["stream_options"], stream, warn),
  };
}

function readEcho(body: JsonObject): Pick<CompletionRequest, "echo" | "topLogprobs"> {
  const echo = readBoolean(body, "echo", false);
  const range = { min: 0, max: maxTopLogprobs, integer: true };
  const topLogprobs = readNumber(body, "logprobs", range, undefined);
  if (echo && topLogprobs !== undefined) {
    const problem = "is not told of a prompt, which echo would put first";
    throw fieldError("unsupported_value", "logprobs", problem, "Leave out echo or logprobs");
  }
  return { echo, topLogprobs };
}

/** A text, tokens, or a list of either. */
export function readInputs(
  value: unknown,
  field: string,
  vocabularySize: number,
  most: number,
): PromptInput[] {
  const remedy = `Send a text, an array of token ids, or an array of up to ${most} of either`;
  if (isAbsent(value)) throw fieldError("missing_field", field, "is missing", remedy);
  if (typeof value === "string") return [readText(value, field, remedy)];
  if (!Array.isArray(value))
    throw fieldError(
      "invalid_type",
      field,
      `must be a text or an array, not ${kindOf(value)}`,
      remedy,
    );
  if (value.length === 0) throw fieldError("invalid_value", field, "is empty", remedy);
  if (value.every((entry) => typeof entry === "number"))
    return [parseTokens(value, field, vocabularySize)];
  if (value.length > most)
    throw fieldError("invalid_value", field, `has ${value.length} entries`, remedy);
  return value.map((entry: unknown, index) => {
    const path = `${field}[${index}]`;
    if (typeof entry === "string") return readText(entry, path, remedy);
    if (Array.isArray(entry)) return parseTokens(entry, path, vocabularySize);
    const problem = `must be a text or an array of tokens, not ${kindOf(entry)}`;
    throw fieldError("invalid_type", path, problem, remedy);
  });
}

function readText(text: string, field: string, remedy: string): string {
  if (text === "") throw fieldError("invalid_value", field, "is empty", remedy);
  return text;
}
