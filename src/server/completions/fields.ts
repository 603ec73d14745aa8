/** Fields of POST /v1/completions, and what they ask for. */

import {
  ignored,
  optional,
  readBodyInParts,
  required,
  type FieldTable,
  type Reading,
  fieldError,
  unless,
} from "../body/field.ts";
import {
  checkChoices,
  choicesField,
  closeAtLimitField,
  generationFields,
  maxChoices,
  modelField,
  streamField,
  streamOptionsField,
  topLogprobs,
  maxTokensFields,
  maxTokensOf,
  stopField,
  timesFields,
  timesWanted,
  usageWanted,
  readSampling,
  type SamplingLimits,
} from "../body/generation.ts";
import { documentOf } from "../body/guidance.ts";
import { lineLimitFields, lineLimitsOf } from "../body/line-limits.ts";
import { tokenWishesOf, tokenWishFields } from "../body/token-wishes.ts";
import { maxPrompts, promptInputs } from "../body/prompt-inputs.ts";
import { boolean, integer, oneOf, text } from "../body/values.ts";

/** OpenAI's, and what clients of this endpoint count on. */
const defaultMaxTokens = 16;

export const completionFields = {
  prompt: required(
    promptInputs(maxPrompts, 0),
    "a text, tokens, or a list of either; special tokens are recognized; an empty text is the token that begins one",
  ),
  model: modelField,
  n: { ...choicesField, about: "for each prompt; choice `i` draws with `seed + i`" },
  echo: optional(
    boolean,
    "the text begins with the prompt, and `logprobs` with the prompt's own",
    false,
  ),
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
  ...lineLimitFields,
  close_at_limit: closeAtLimitField,
  ...tokenWishFields,
  add_special_tokens: optional(
    boolean,
    "vLLM's: `false`: a text does not get the token that texts begin with",
    true,
  ),
  skip_special_tokens: optional(
    boolean,
    "vLLM's: `false`: control tokens that are generated are part of the text",
    true,
  ),
  truncate_prompt_tokens: optional(
    integer(-1),
    "vLLM's: so many tokens of the prompt are read; -1: as many as leave room for the answer",
  ),
  truncation_side: optional(
    oneOf(["left", "right"]),
    "where `truncate_prompt_tokens` cuts",
    "left",
  ),
  user: ignored("is not used"),
  request_id: ignored("is not used: `X-Request-Id` is"),
  priority: ignored("has no effect: clients take turns", unless(0)),
  spaces_between_special_tokens: ignored("has no effect", unless(true)),
  best_of: optional(integer(1, maxChoices), "as `n`: no answers are thrown away"),
  suffix: optional(
    text({ remedy: "Send a text" }),
    "what stands behind the answer, for models that were trained to fill in the middle; `prompt` is a text then, in which no special token is recognized",
  ),
} satisfies FieldTable;

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function* parseCompletionRequest(
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
    lineLimits: lineLimitsOf(given),
    document: documentOf(given),
    closeAtLimit: given.close_at_limit,
    cacheSalt: given.cache_salt,
    stream,
    usage: usageWanted(given),
    tokens: tokenWishesOf(given),
    spellsControlTokens: !given.skip_special_tokens,
    beginsText: given.add_special_tokens,
    truncation:
      given.truncate_prompt_tokens === undefined
        ? undefined
        : { length: given.truncate_prompt_tokens, side: given.truncation_side },
    times: timesWanted(given),
  };
}
