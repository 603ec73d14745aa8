/** Fields of POST /completion and /infill, as llama-server has them, and what they ask for. */

import {
  ignored,
  optional,
  readBody,
  required,
  type FieldTable,
  type Reading,
  type Type,
  fieldError,
  isAbsent,
  type ValuesOf,
} from "../body/field.ts";
import { isJsonObject } from "../../json.ts";
import {
  checkChoices,
  choicesField,
  maxChoices,
  closeAtLimitField,
  generationFields,
  modelField,
  streamField,
  maxTokensFields,
  maxTokensOf,
  stopField,
  timesFields,
  timesWanted,
  tokenLimit,
  readSampling,
  type SamplingLimits,
} from "../body/generation.ts";
import { documentOf } from "../body/guidance.ts";
import { lineLimitFields, lineLimitsOf } from "../body/line-limits.ts";
import { isNumber, maxPrompts, promptInputs, type PromptInput } from "../body/prompt-inputs.ts";
import { boolean, integer, list, object, text } from "../body/values.ts";
import type { Gap } from "../answer/infill.ts";

interface NativePrompts {
  /** Each in pieces that follow each other. At least one. */
  prompts: PromptInput[][];
  /** They came as a list, or several answers are wanted: the answers are a list. */
  isList: boolean;
}

/** Each token of a stream tells that many. */
const maxProbabilities = 1000;

/** More than an editor's ring of files has. */
const maxFiles = 256;

const onePrompt = promptInputs(1, 0);

const nativePrompts: Type<NativePrompts> = {
  schema: {
    anyOf: [
      ...(onePrompt.schema["anyOf"] as object[]),
      {
        type: "object",
        properties: { prompt_string: { type: "string" } },
        required: ["prompt_string"],
      },
      { type: "array", items: onePrompt.schema, minItems: 1, maxItems: maxPrompts },
    ],
  },
  remedy: onePrompt.remedy,
  read(value, path, reading) {
    const isList = Array.isArray(value) && value.length > 0 && !value.some(isNumber);
    if (!isList) return { prompts: [readPrompt(value, path, reading)], isList };
    if (value.length > maxPrompts) {
      const remedy = `Send up to ${maxPrompts}`;
      throw fieldError("invalid_value", path, `has ${value.length} entries`, remedy);
    }
    const read = (prompt: unknown, index: number): PromptInput[] =>
      readPrompt(prompt, `${path}[${index}]`, reading);
    return { prompts: value.map(read), isList };
  },
};

function readPrompt(value: unknown, path: string, reading: Reading): PromptInput[] {
  if (isJsonObject(value)) {
    if (!isAbsent(value["multimodal_data"])) {
      const field = `${path}.multimodal_data`;
      const problem = "has media, and the model reads text only";
      throw fieldError("image_not_supported", field, problem, "Send prompt_string only");
    }
    return required(onePrompt).read(value["prompt_string"], `${path}.prompt_string`, reading);
  }
  const isMixed = Array.isArray(value) && value.some(isNumber) && !value.every(isNumber);
  if (!isMixed) return onePrompt.read(value, path, reading);
  return value.flatMap((piece: unknown, index) =>
    onePrompt.read(isNumber(piece) ? [piece] : piece, `${path}[${index}]`, reading),
  );
}

const sharedFields = {
  model: modelField,
  n: { ...choicesField, about: "answers to each prompt, the `i`th of which draws with `seed + i`" },
  n_cmpl: optional(integer(1, maxChoices), "as `n`, and wins"),
  ...maxTokensFields,
  max_tokens: optional(tokenLimit, "as `n_predict`, and wins"),
  n_predict: optional(
    tokenLimit,
    "default -1: no limit but the context's; 0 reads the prompt into the cache and generates nothing",
  ),
  stop: stopField,
  n_probs: optional(
    integer(0, maxProbabilities),
    "how many alternatives to each token; 0: no probabilities",
    0,
  ),
  return_tokens: optional(boolean, "`true`: the ids of what was generated", false),
  response_fields: optional(
    list(text(), { remedy: 'Send ["content"]' }),
    "names of what is wanted of the answer; `a/b` is `b` in `a`",
    [],
  ),
  stream: streamField,
  ...timesFields,
  ...generationFields,
  ...lineLimitFields,
  post_sampling_probs: optional(
    boolean,
    "`true`: those that the token was drawn by, not the model's own: as `prob` and `top_probs`",
    false,
  ),
  close_at_limit: closeAtLimitField,
  user: ignored("is not used"),
} satisfies FieldTable;

export const nativeCompletionFields = {
  prompt: required(
    nativePrompts,
    'a text, tokens, texts and tokens mixed, `{"prompt_string": …}`, or a list of them',
  ),
  ...sharedFields,
} satisfies FieldTable;

const file = object(
  {
    filename: optional(text({ remedy: "Send a text" }), "", "tmp"),
    text: required(text({ remedy: "Send a text" }), ""),
  },
  'Send {"filename": "…", "text": "…"}',
  "passed over",
);

export const infillFields = {
  input_prefix: required(text({ remedy: "Send a text" }), "what stands before the gap"),
  input_suffix: required(text({ remedy: "Send a text" }), "what stands behind it"),
  input_extra: optional(
    list(file, { max: maxFiles, remedy: 'Send [{"filename": "…", "text": "…"}]' }),
    "other files, the most important one last; those that find no room are left out",
    [],
  ),
  prompt: optional(text({ remedy: "Send a text" }), "the beginning of what fills the gap", ""),
  ...sharedFields,
} satisfies FieldTable;

/** What a request of either route asks for. */
export interface NativeRequest extends ReturnType<typeof wanted> {
  /** Each in pieces that follow each other. At least one. */
  prompts: readonly (readonly PromptInput[])[];
  /** The answers are a list. */
  isList: boolean;
}

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function parseNativeCompletion(
  body: unknown,
  limits: SamplingLimits,
  warn: Reading["warn"],
): NativeRequest {
  const reading = { warn, vocabularySize: limits.vocabularySize };
  const given = readBody(nativeCompletionFields, body, reading, 'Send {"prompt": "…"}');
  const { prompts, isList } = given.prompt;
  const request = wanted(given, limits);
  checkChoices(prompts.length, request.n);
  return { ...request, prompts, isList: isList || request.n > 1 };
}

/** The request without its prompt, and the gap to make it of. @throws as `parseNativeCompletion` */
export function parseInfill(
  body: unknown,
  limits: SamplingLimits,
  warn: Reading["warn"],
): { gap: Gap; request: Omit<NativeRequest, "prompts"> } {
  const reading = { warn, vocabularySize: limits.vocabularySize };
  const remedy = 'Send {"input_prefix": "…", "input_suffix": "…"}';
  const given = readBody(infillFields, body, reading, remedy);
  const files = given.input_extra.map(({ filename, text }) => ({ name: filename, text }));
  const request = wanted(given, limits);
  return {
    gap: { prefix: given.input_prefix, suffix: given.input_suffix, begun: given.prompt, files },
    request: { ...request, isList: request.n > 1 },
  };
}

function wanted(given: ValuesOf<typeof sharedFields>, limits: SamplingLimits) {
  return {
    n: given.n_cmpl ?? given.n,
    model: given.model,
    sampling: readSampling(given, limits),
    stop: given.stop,
    maxTokens: maxTokensOf(given, limits),
    lineLimits: lineLimitsOf(given),
    topLogprobs: given.n_probs || undefined,
    postSampling: given.post_sampling_probs,
    document: documentOf(given),
    closeAtLimit: given.close_at_limit,
    cacheSalt: given.cache_salt,
    returnTokens: given.return_tokens,
    responseFields: given.response_fields,
    stream: given.stream,
    times: timesWanted(given),
  };
}
