/** A body of POST /v1/completions as plain, checked data. Pure. */

import { type PromptInput, readInputs } from "../body/prompt-inputs.ts";
import { maxChoices, maxTopLogprobs, readModel, readStreamOptions } from "../body/common.ts";
import type { Sampling } from "../../engine/types.ts";
import type { DocumentFormat } from "../../guidance/types.ts";
import {
  expectBody,
  fieldError,
  readBoolean,
  readNumber,
  type JsonObject,
} from "../body/fields.ts";
import { completionParameters } from "./fields.ts";
import { checkParameters } from "../body/parameter.ts";
import { readDocument } from "../body/guidance.ts";
import { readMaxTokens, readSampling, readStop, type SamplingLimits } from "../body/sampling.ts";
import type { Warn } from "../body/warnings.ts";

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
