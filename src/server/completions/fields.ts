/** Fields of POST /v1/completions, and what they ask for. */

import {
  ignored,
  optional,
  readBodyInParts,
  required,
  type FieldTable,
  type Reading,
  fieldError,
} from "../body/field.ts";
import {
  checkChoices,
  choicesField,
  closeAtLimitField,
  generationFields,
  maxChoices,
  modelField,
  includesUsage,
  streamField,
  streamOptionsField,
  topLogprobs,
  maxTokensFields,
  maxTokensOf,
  stopField,
  timesFields,
  timesWanted,
  readSampling,
  type SamplingLimits,
} from "../body/generation.ts";
import { documentOf } from "../body/guidance.ts";
import { maxPrompts, promptInputs } from "../body/prompt-inputs.ts";
import { boolean, integer, text } from "../body/values.ts";

/** OpenAI's, and what clients of this endpoint count on. */
const defaultMaxTokens = 16;

export const completionFields = {
  prompt: required(
    promptInputs(maxPrompts, 0),
    "a text, tokens, or a list of either; special tokens are recognized; an empty text is the token that begins one",
  ),
  model: modelField,
  n: { ...choicesField, about: "for each prompt; choice `i` draws with `seed + i`" },
  echo: optional(boolean, "not together with `logprobs`: the prompt's own are not computed", false),
  logprobs: optional(topLogprobs, "how many alternatives to each token"),
  n_probs: optional(topLogprobs, "above 0: `logprobs` with so many alternatives"),
  ...maxTokensFields,
  max_tokens: {
    ...maxTokensFields.max_tokens,
    about: `default ${defaultMaxTokens}, as OpenAI has it; -1 is no limit; at most the context`,
  },
  stop: stopField,
  stream: streamField,
  stream_options: streamOptionsField,
  ...timesFields,
  ...generationFields,
  close_at_limit: closeAtLimitField,
  user: ignored("is not used"),
  best_of: optional(integer(1, maxChoices), "as `n`: no answers are thrown away"),
  suffix: optional(
    text({ remedy: "Send a text" }),
    "what stands behind the answer, for models that were trained to fill in the middle; `prompt` is a text then, in which no special token is recognized",
  ),
} satisfies FieldTable;

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function* parseCompletionRequestInParts(
  body: unknown,
  limits: SamplingLimits,
  warn: Reading["warn"],
) {
  const reading = { warn, vocabularySize: limits.vocabularySize };
  const given = yield* readBodyInParts(completionFields, body, reading, 'Send {"prompt": "…"}');
  const { prompt: prompts, n, echo, stop, stream } = given;
  const topLogprobs = given.logprobs ?? (given.n_probs || undefined);
  checkChoices(prompts.length, n);
  if (given.best_of !== undefined && given.best_of !== n) {
    const problem = "asks for answers that are dropped";
    throw fieldError("unsupported_value", "best_of", problem, "Send n and choose yourself");
  }
  if (echo && topLogprobs !== undefined) {
    const problem = "has no values for the prompt, which echo puts first";
    throw fieldError("unsupported_value", "logprobs", problem, "Leave out echo or logprobs");
  }
  const suffix = given.suffix === "" ? undefined : given.suffix;
  if (suffix !== undefined && prompts.some((prompt) => typeof prompt !== "string")) {
    const problem = "needs a prompt that is a text";
    throw fieldError("unsupported_value", "suffix", problem, "Send the prompt as a text");
  }
  return {
    model: given.model,
    prompts,
    suffix,
    /** Answers to each prompt. */
    n,
    echo,
    topLogprobs,
    sampling: readSampling(given, limits),
    stop,
    maxTokens: maxTokensOf(given, limits, defaultMaxTokens),
    document: documentOf(given),
    closeAtLimit: given.close_at_limit,
    cacheSalt: given.cache_salt,
    stream,
    includeUsage: includesUsage(given, warn),
    times: timesWanted(given),
  };
}
