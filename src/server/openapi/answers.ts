/** What the endpoints answer with, as JSON Schema. The fuzz tests hold every answer to it, key by key. */

import {
  boolean,
  constant,
  list,
  metadata,
  nullable,
  object,
  oneOf,
  record,
  string,
} from "./json-schema.ts";
import type { Schema } from "../body/field.ts";

export const whole: Schema = { type: "integer", minimum: 0 };
export const real: Schema = { type: "number" };
const nothing: Schema = { type: "null" };
export const yes: Schema = { const: true };

/** All properties are always there, but for those of `optional`. */
export function answer(
  properties: Record<string, Schema>,
  optional: Record<string, Schema> = {},
): Schema {
  return record({ ...properties, ...optional }, Object.keys(properties));
}

export function pageOf(entry: Schema): Schema {
  return answer({
    object: constant("list"),
    data: list(entry),
    first_id: nullable(string),
    last_id: nullable(string),
    has_more: boolean,
  });
}

export function choice(...values: string[]): Schema {
  return { type: "string", enum: values };
}

const token = answer({
  token: string,
  logprob: real,
  bytes: list({ type: "integer", minimum: 0, maximum: 255 }),
});
export const contentToken = answer({
  ...(token["properties"] as Record<string, Schema>),
  top_logprobs: list(token),
});

const usage = answer({
  prompt_tokens: whole,
  completion_tokens: whole,
  total_tokens: whole,
  prompt_tokens_details: answer({ cached_tokens: whole, cache_write_tokens: whole }),
  completion_tokens_details: answer({ reasoning_tokens: whole }),
});
/** llama-server's. */
const timings = record({
  cache_n: whole,
  prompt_n: whole,
  prompt_ms: real,
  prompt_per_token_ms: real,
  prompt_per_second: real,
  predicted_n: whole,
  predicted_ms: real,
  predicted_per_token_ms: real,
  predicted_per_second: real,
});
const finishReason = choice("stop", "length", "tool_calls", "content_filter");
const chatCall = answer(
  {
    id: string,
    type: constant("function"),
    function: answer({ name: string, arguments: string }),
  },
  { validation_error: string },
);
const chatMessage = answer(
  { role: constant("assistant"), content: nullable(string), refusal: nothing },
  {
    reasoning_content: string,
    tool_calls: list(chatCall),
    validation_error: string,
    warnings: list(string),
  },
);

/** vLLM's: what ended the text, if a string or a token of the request did; the rest if it was asked for. */
const choiceExtras = { stop_reason: oneOf(string, whole), token_ids: list(whole) };
const promptExtras = {
  prompt_token_ids: list(whole),
  prompt_logprobs: list(
    nullable({
      type: "object",
      additionalProperties: answer({ logprob: real, rank: nullable(whole), decoded_token: string }),
    }),
  ),
};

const completionFields = {
  id: string,
  object: constant("chat.completion"),
  created: whole,
  model: string,
  system_fingerprint: string,
  choices: list(
    answer(
      {
        index: whole,
        message: chatMessage,
        logprobs: nullable(answer({ content: nullable(list(contentToken)), refusal: nothing })),
        finish_reason: finishReason,
      },
      choiceExtras,
    ),
  ),
  usage,
};
export const chatCompletion = answer(completionFields, { timings, ...promptExtras });
export const storedCompletion = answer(
  { ...completionFields, metadata },
  { timings, ...promptExtras },
);
export const storedCompletions = pageOf(storedCompletion);
export const deletedCompletion = answer({
  id: string,
  object: constant("chat.completion.deleted"),
  deleted: yes,
});
/** As it was sent. */
export const storedMessages = pageOf({
  ...answer({ id: string, content: nullable(string), content_parts: nullable(list(object)) }),
  additionalProperties: true,
});

const textCompletionFields = {
  id: string,
  object: constant("text_completion"),
  created: whole,
  model: string,
  system_fingerprint: string,
  choices: list(
    answer(
      {
        index: whole,
        text: string,
        logprobs: nullable(
          answer({
            tokens: list(string),
            // Null of the first token of a prompt that is echoed.
            token_logprobs: list(nullable(real)),
            top_logprobs: list(nullable({ type: "object", additionalProperties: real })),
            text_offset: list(whole),
          }),
        ),
        finish_reason: finishReason,
      },
      { ...choiceExtras, ...promptExtras },
    ),
  ),
  usage,
};
export const textCompletion = answer(textCompletionFields, { timings });

/** Fewer if `response_fields` says so; a list if the prompt was one. */
const nativeAnswer: Schema = {
  ...record({
    content: string,
    tokens: list(whole),
    stop: yes,
    stop_type: choice("eos", "word", "limit", "none"),
    tokens_predicted: whole,
    tokens_evaluated: whole,
  }),
  additionalProperties: true,
};
export const nativeCompletion = oneOf(nativeAnswer, list(nativeAnswer));

export const ranking = oneOf(
  answer({
    id: string,
    model: string,
    object: constant("list"),
    usage: answer({ prompt_tokens: whole, total_tokens: whole }),
    results: list(
      answer({ index: whole, relevance_score: real }, { document: answer({ text: string }) }),
    ),
  }),
  // Of a request with `texts`.
  list(answer({ index: whole, score: real }, { text: string })),
);
export const scores = answer({
  id: string,
  object: constant("list"),
  created: whole,
  model: string,
  data: list(answer({ index: whole, object: constant("score"), score: real })),
  usage: answer({ prompt_tokens: whole, total_tokens: whole, completion_tokens: whole }),
});
export const embeddingList = answer({
  object: constant("list"),
  data: list(
    answer({
      object: constant("embedding"),
      index: whole,
      // Base64 of little-endian floats if that was asked for.
      embedding: oneOf(list(real), string),
    }),
  ),
  model: string,
  usage: answer({ prompt_tokens: whole, total_tokens: whole }),
});

/** Each vector is a list in a list: llama-server has one for each token where nothing is pooled. */
export const nativeEmbeddings = list(answer({ index: whole, embedding: list(list(real)) }));

/** A piece that is no UTF-8 by itself is an array of bytes. */
const piece = answer({ id: whole, piece: oneOf(string, list(whole)) });
export const tokens = answer(
  { tokens: oneOf(list(whole), list(piece)) },
  // vLLM's.
  { count: whole, max_model_len: whole, token_strs: nullable(list(string)) },
);
export const text = answer({ content: string, prompt: string });
export const prompt = answer({ prompt: string });

/** A chunk of a chat completion that asked for it: `fermata.tool_status`. */
export const toolStatusChunk: Record<string, Schema> = {
  "chat.completion.chunk": {
    ...answer({
      tool_status: answer(
        {
          call_id: string,
          name: string,
          server: string,
          state: choice("approval", "running", "done", "failed", "denied"),
        },
        { agent: string, message: string, progress: real, total: real, milliseconds: whole },
      ),
    }),
    additionalProperties: true,
    description:
      "With fermata.tool_status: beside an empty delta, what a tool of the server's does.",
  },
};

const block = oneOf(
  answer({ type: constant("thinking"), thinking: string, signature: string }),
  answer({ type: constant("text"), text: string, citations: nothing }),
  answer({ type: constant("tool_use"), id: string, name: string, input: object }),
);
export const message = answer(
  {
    id: string,
    type: constant("message"),
    role: constant("assistant"),
    model: string,
    content: list(block),
    stop_reason: choice("end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"),
    stop_sequence: nullable(string),
    usage: answer({
      input_tokens: whole,
      cache_creation_input_tokens: whole,
      cache_read_input_tokens: whole,
      output_tokens: whole,
    }),
  },
  { warnings: list(string) },
);
export const messageTokens = answer({ input_tokens: whole });

export const modelState = choice("unloaded", "loading", "loaded", "unloading");
export const model = answer(
  {
    id: string,
    object: constant("model"),
    created: whole,
    owned_by: string,
    type: constant("model"),
    display_name: string,
    created_at: string,
  },
  {
    context_length: whole,
    max_model_len: whole,
    status: answer({ value: modelState }, { progress: real }),
    meta: answer({
      n_vocab: whole,
      n_ctx: whole,
      n_ctx_train: whole,
      n_params: whole,
      size: whole,
      vocab_type: whole,
      n_embd: whole,
      ftype: string,
    }),
  },
);
export const modelDetails = answer({
  parent_model: string,
  format: constant("gguf"),
  family: string,
  families: list(string),
  parameter_size: string,
  quantization_level: string,
});
/** Of Ollama's list. */
export const listedModel = {
  name: string,
  model: string,
  modified_at: string,
  size: whole,
  digest: string,
  details: modelDetails,
};

export const models = answer({
  object: constant("list"),
  data: list(model),
  first_id: nullable(string),
  last_id: nullable(string),
  has_more: boolean,
  models: list(
    answer({
      ...listedModel,
      type: constant("model"),
      description: string,
      parameters: string,
      tags: list(string),
      capabilities: list(string),
    }),
  ),
});
export const props = answer({
  default_generation_settings: answer({ params: object, n_ctx: whole }),
  total_slots: whole,
  model_alias: string,
  model_path: string,
  model_ftype: string,
  modalities: answer({ vision: boolean, video: boolean, audio: boolean }),
  endpoint_slots: boolean,
  endpoint_props: boolean,
  endpoint_metrics: boolean,
  chat_template: string,
  chat_template_caps: { type: "object", additionalProperties: boolean },
  ui: boolean,
  ui_settings: object,
  cors_proxy_enabled: boolean,
  bos_token: string,
  eos_token: string,
  build_info: string,
  is_sleeping: boolean,
});
export const tokenizerInfo = answer({
  tokenizer_class: string,
  model_max_length: whole,
  add_bos_token: boolean,
  bos_token: nullable(string),
  eos_token: nullable(string),
  pad_token: nullable(string),
  chat_template: nullable(string),
});
export const slots = list(
  answer({ id: whole, n_ctx: whole, speculative: boolean, is_processing: boolean }),
);
export const health = answer({ status: choice("ok", "hung"), model: string, step_age_ms: whole });
export const ready = answer({
  status: choice("ready", "busy"),
  step_age_ms: whole,
  running: whole,
  waiting: whole,
});
