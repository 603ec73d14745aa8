/** What /openapi.json says of answers, texts, vectors and tokens, but for Responses and Ollama's API. */

import { toolStatusShape } from "../answer/client-view.ts";
import { timings } from "../answer/completion-parts.ts";
import type { Schema } from "../body/field.ts";
import { pageQuery } from "../body/stored.ts";
import { chatCompletion, chatCompletionExtras } from "../chat-completions/completion.ts";
import { chatCompletionFields } from "../chat-completions/fields.ts";
import { labelFields } from "../chat-completions/stored-routes.ts";
import { textCompletion } from "../completions/completion.ts";
import { completionFields } from "../completions/fields.ts";
import { infillFields, nativeCompletionFields } from "../completions/native-fields.ts";
import { embeddingFields, nativeEmbeddingFields } from "../embeddings/fields.ts";
import { embeddings } from "../embeddings/route.ts";
import { messageFields } from "../messages/fields.ts";
import { message } from "../messages/message.ts";
import { rerankFields, scoreFields } from "../rerank/fields.ts";
import { detokenizeFields, templateBodyFields, tokenizeFields } from "../tokens/fields.ts";
import {
  answer,
  boolean,
  choice,
  inputTokens,
  list,
  metadata,
  nullable,
  object,
  oneOf,
  pageOf,
  real,
  record,
  string,
  whole,
  yes,
} from "../body/shapes.ts";
import type { Operation } from "./operation.ts";

const storedCompletion = answer({ ...chatCompletion, metadata }, chatCompletionExtras);

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

const nativeCompletion = oneOf(nativeAnswer, list(nativeAnswer));

/** A piece that is no UTF-8 by itself is an array of bytes. */
const piece = answer({ id: whole, piece: oneOf(string, list(whole)) });

const user = { role: "user", content: "Hello!" };
const rerank: Operation = {
  summary: "How well documents answer a query, the best first, if a model that ranks is loaded.",
  request: rerankFields,
  example: { query: "Where is the key?", documents: ["Under the mat.", "It rains."] },
  answer: oneOf(
    answer({
      id: string,
      model: string,
      object: choice("list"),
      usage: answer({ prompt_tokens: whole, total_tokens: whole }),
      results: list(
        answer({ index: whole, relevance_score: real }, { document: answer({ text: string }) }),
      ),
    }),
    // Of a request with `texts`.
    list(answer({ index: whole, score: real }, { text: string })),
  ),
};

export const generationOperations: Readonly<Record<string, Operation>> = {
  "POST /v1/chat/completions": {
    summary: "An answer in OpenAI's Chat Completions format.",
    request: chatCompletionFields,
    example: { messages: [user] },
    /** A chunk of a chat completion that asked for it: `fermata.tool_status`. */
    streams: {
      "chat.completion.chunk": {
        ...answer({
          tool_status: toolStatusShape,
        }),
        additionalProperties: true,
        description:
          "With fermata.tool_status: beside an empty delta, what a tool of the server's does.",
      },
    },
    answer: answer(chatCompletion, chatCompletionExtras),
  },
  "GET /v1/chat/completions": {
    summary: "Stored chat completions; `metadata[name]` filters too.",
    query: { ...pageQuery, model: string },
    answer: pageOf(storedCompletion),
  },
  "GET /v1/chat/completions/{id}": {
    summary: "A stored chat completion.",
    answer: storedCompletion,
  },
  "POST /v1/chat/completions/{id}": {
    summary: "Replaces a stored chat completion's metadata.",
    request: labelFields,
    answer: storedCompletion,
  },
  "DELETE /v1/chat/completions/{id}": {
    summary: "Deletes a stored chat completion.",
    answer: answer({
      id: string,
      object: choice("chat.completion.deleted"),
      deleted: yes,
    }),
  },
  "GET /v1/chat/completions/{id}/messages": {
    summary: "What a stored chat completion was given.",
    query: pageQuery,
    /** As it was sent. */
    answer: pageOf({
      ...answer({ id: string, content: nullable(string), content_parts: nullable(list(object)) }),
      additionalProperties: true,
    }),
  },
  "POST /v1/chat/completions/input_tokens": {
    summary: "What a request would take of the context.",
    request: chatCompletionFields,
    example: { messages: [user] },
    answer: inputTokens,
  },
  "POST /v1/completions": {
    summary: "A text continued, in OpenAI's legacy Completions format.",
    request: completionFields,
    streams: true,
    answer: answer(textCompletion, { timings }),
  },
  "POST /completion": {
    summary: "A text continued, in llama-server's format.",
    request: nativeCompletionFields,
    streams: true,
    answer: nativeCompletion,
  },
  "POST /infill": {
    summary: "What stands between two texts, in llama-server's format, by a model trained for it.",
    request: infillFields,
    example: { input_prefix: "def add(a, b):\n    return ", input_suffix: "\n" },
    streams: true,
    answer: nativeCompletion,
  },
  "POST /v1/embeddings": {
    summary: "Vectors of texts, if an embedding model is loaded.",
    request: embeddingFields(),
    answer: embeddings,
  },
  "POST /embedding": {
    summary: "Vectors of texts in llama-server's format, if an embedding model is loaded.",
    request: nativeEmbeddingFields,
    /** Each vector is a list in a list: llama-server has one for each token where nothing is pooled. */
    answer: list(answer({ index: whole, embedding: list(list(real)) })),
  },
  "POST /v1/rerank": rerank,
  "POST /v1/reranking": rerank,
  "POST /v2/rerank": rerank,
  "POST /v1/score": {
    summary: "How well texts answer others, pair by pair, if a model that ranks is loaded.",
    request: scoreFields,
    example: { text_1: "Where is the key?", text_2: ["Under the mat.", "It rains."] },
    answer: answer({
      id: string,
      object: choice("list"),
      created: whole,
      model: string,
      data: list(answer({ index: whole, object: choice("score"), score: real })),
      usage: answer({ prompt_tokens: whole, total_tokens: whole, completion_tokens: whole }),
    }),
  },
  "POST /tokenize": {
    summary: "A text as tokens.",
    request: tokenizeFields,
    answer: answer(
      { tokens: oneOf(list(whole), list(piece)) },
      // vLLM's.
      { count: whole, max_model_len: whole, token_strs: nullable(list(string)) },
    ),
  },
  "POST /detokenize": {
    summary: "Tokens as text.",
    request: detokenizeFields,
    answer: answer({ content: string, prompt: string }),
  },
  "POST /apply-template": {
    summary: "The prompt that a chat completion would begin with.",
    request: templateBodyFields,
    answer: answer({ prompt: string }),
  },
  "GET /tokenizer_info": {
    summary: "The special tokens and the chat template, as vLLM tells them.",
    answer: answer({
      tokenizer_class: string,
      model_max_length: whole,
      add_bos_token: boolean,
      bos_token: nullable(string),
      eos_token: nullable(string),
      pad_token: nullable(string),
      chat_template: nullable(string),
    }),
  },
  "POST /v1/messages": {
    summary: "An answer in Anthropic's Messages format.",
    request: messageFields,
    example: { max_tokens: 100, messages: [user] },
    streams: true,
    answer: message,
  },
  "POST /v1/messages/count_tokens": {
    summary: "What a message's prompt would take of the context.",
    request: messageFields,
    example: { messages: [user] },
    answer: answer({ input_tokens: whole }),
  },
};
