/** Fields that every endpoint which generates takes: model, stream, limits, and those of other servers that none here has. */

import { ignored, optional, refused, type FieldTable, type Type, type ValuesOf } from "./field.ts";
import { documentFields } from "./guidance.ts";
import { samplingFields, type SamplingLimits } from "./sampling.ts";
import { boolean, integer, object, text, either, list, mapped } from "./values.ts";
import type { Warn } from "./warnings.ts";
import { fieldError } from "./field-error.ts";

/** As OpenAI has it. */
export const maxChoices = 128;
export const maxTopLogprobs = 20;

export const modelField = optional(
  text({ remedy: "Send a model's name or leave it out" }),
  "one model is loaded and answers to every name; an unknown one is logged",
);
export const streamField = optional(boolean, "server-sent events", false);
export const choicesField = optional(integer(1, maxChoices), "choice `i` draws with `seed + i`", 1);
export const topLogprobs = integer(0, maxTopLogprobs);
export const closeAtLimitField = optional(
  boolean,
  "`true`: a guided answer ends on a valid path before the token limit",
  false,
);
export const streamOptionsField = optional(
  object(
    {
      include_usage: optional(boolean, "", false),
      include_obfuscation: ignored("has no effect", (value) => value === false),
    },
    'Send {"include_usage": true}',
  ),
  "`include_usage`; without effect where `stream` is false",
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

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;
const isFalse = (value: unknown): boolean => value === false;
const isZero = (value: unknown): boolean => value === 0;
const useDocument = "Send guided_json_schema, guided_regex or guided_grammar";
const lazyGrammar = "asks for a grammar that begins in the middle, which is not supported";
const leaveOutGrammar = "Leave it out: calls of tools are guided by themselves";

/** Of vLLM and llama-server. */
export const fieldsNotHere = {
  guided_whitespace_pattern: refused("is not supported", useDocument),
  structural_tag: refused("is not supported", useDocument),
  guided_decoding_backend: ignored("has no effect: there is one"),
  grammar_lazy: refused(lazyGrammar, leaveOutGrammar, isFalse),
  grammar_triggers: refused(lazyGrammar, leaveOutGrammar, isEmptyList),
  min_tokens: refused("is not supported", "Send ignore_eos with a limit", isZero),
  stop_token_ids: refused("is not supported", "Send stop with the tokens' text", isEmptyList),
  bad_words: refused("is not supported", "Send logit_bias with a text and false", isEmptyList),
  allowed_token_ids: refused("is not supported", "Send guided_choice or guided_regex", isEmptyList),
  use_beam_search: refused("is not supported", "Leave it out", isFalse),
  include_stop_str_in_output: refused("is not supported", "Leave it out", isFalse),
  n_indent: refused("is not supported", "Leave it out", isZero),
  t_max_predict_ms: refused(
    "is not supported",
    "Send a limit of tokens",
    (value) => typeof value === "number" && value <= 0,
  ),
  lora: refused("names adapters, and none is loaded", "Leave it out", isEmptyList),
} satisfies FieldTable;

export const generationFields = { ...samplingFields, ...documentFields, ...fieldsNotHere };

/** Whether the last chunk of a stream tells the usage. */
export function includesUsage(
  given: { stream: boolean; stream_options: { include_usage: boolean } | undefined },
  warn: Warn,
): boolean {
  if (given.stream_options === undefined) return false;
  if (!given.stream) warn("stream_options", "has no effect without stream");
  return given.stream_options.include_usage;
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
 * Undefined: no limit but the context's. More than the context holds is no error: agents send one fixed number to
 * every model.
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
