/** What /openapi.json says of each route. A route without an entry fails test/contract/openapi.test.ts. */

import { pageQuery } from "../body/stored.ts";
import { loadFields } from "../about/loading.ts";
import { chatCompletionFields } from "../chat-completions/fields.ts";
import { labelFields } from "../chat-completions/stored-routes.ts";
import { completionFields } from "../completions/fields.ts";
import { infillFields, nativeCompletionFields } from "../completions/native-fields.ts";
import { embeddingFields, nativeEmbeddingFields } from "../embeddings/fields.ts";
import { messageFields } from "../messages/fields.ts";
import { rerankFields, scoreFields } from "../rerank/fields.ts";
import { detokenizeFields, templateBodyFields, tokenizeFields } from "../tokens/fields.ts";
import * as answers from "./answers.ts";
import * as apiAnswers from "./api-answers.ts";
import * as responseAnswers from "./response-answers.ts";
import { object, string } from "./json-schema.ts";
import type { Operation } from "./operation.ts";
import { ollamaOperations } from "./ollama-operations.ts";
import { responseOperations } from "./response-operations.ts";
import { apiOperations } from "./api-operations.ts";

const user = { role: "user", content: "Hello!" };

const rerank: Operation = {
  summary: "How well documents answer a query, the best first, if a model that ranks is loaded.",
  request: rerankFields,
  example: { query: "Where is the key?", documents: ["Under the mat.", "It rains."] },
  answer: answers.ranking,
};

/** By method and path. */
export const operations: Readonly<Record<string, Operation>> = {
  "POST /v1/chat/completions": {
    summary: "An answer in OpenAI's Chat Completions format.",
    request: chatCompletionFields,
    example: { messages: [user] },
    streams: answers.toolStatusChunk,
    answer: answers.chatCompletion,
  },
  "GET /v1/chat/completions": {
    summary: "Stored chat completions; `metadata[name]` filters too.",
    query: { ...pageQuery, model: string },
    answer: answers.storedCompletions,
  },
  "GET /v1/chat/completions/{id}": {
    summary: "A stored chat completion.",
    answer: answers.storedCompletion,
  },
  "POST /v1/chat/completions/{id}": {
    summary: "Replaces a stored chat completion's metadata.",
    request: labelFields,
    answer: answers.storedCompletion,
  },
  "DELETE /v1/chat/completions/{id}": {
    summary: "Deletes a stored chat completion.",
    answer: answers.deletedCompletion,
  },
  "GET /v1/chat/completions/{id}/messages": {
    summary: "What a stored chat completion was given.",
    query: pageQuery,
    answer: answers.storedMessages,
  },
  "POST /v1/chat/completions/input_tokens": {
    summary: "What a request would take of the context.",
    request: chatCompletionFields,
    example: { messages: [user] },
    answer: responseAnswers.inputTokens,
  },
  "POST /v1/completions": {
    summary: "A text continued, in OpenAI's legacy Completions format.",
    request: completionFields,
    streams: true,
    answer: answers.textCompletion,
  },
  "POST /completion": {
    summary: "A text continued, in llama-server's format.",
    request: nativeCompletionFields,
    streams: true,
    answer: answers.nativeCompletion,
  },
  "POST /infill": {
    summary: "What stands between two texts, in llama-server's format, by a model trained for it.",
    request: infillFields,
    example: { input_prefix: "def add(a, b):\n    return ", input_suffix: "\n" },
    streams: true,
    answer: answers.nativeCompletion,
  },
  "POST /v1/embeddings": {
    summary: "Vectors of texts, if an embedding model is loaded.",
    request: embeddingFields(),
    answer: answers.embeddingList,
  },
  "POST /embedding": {
    summary: "Vectors of texts in llama-server's format, if an embedding model is loaded.",
    request: nativeEmbeddingFields,
    answer: answers.nativeEmbeddings,
  },
  "POST /v1/rerank": rerank,
  "POST /v1/reranking": rerank,
  "POST /v2/rerank": rerank,
  "POST /v1/score": {
    summary: "How well texts answer others, pair by pair, if a model that ranks is loaded.",
    request: scoreFields,
    example: { text_1: "Where is the key?", text_2: ["Under the mat.", "It rains."] },
    answer: answers.scores,
  },
  "POST /tokenize": {
    summary: "A text as tokens.",
    request: tokenizeFields,
    answer: answers.tokens,
  },
  "POST /detokenize": {
    summary: "Tokens as text.",
    request: detokenizeFields,
    answer: answers.text,
  },
  "POST /apply-template": {
    summary: "The prompt that a chat completion would begin with.",
    request: templateBodyFields,
    answer: answers.prompt,
  },
  "GET /tokenizer_info": {
    summary: "The special tokens and the chat template, as vLLM tells them.",
    answer: answers.tokenizerInfo,
  },
  "POST /v1/messages": {
    summary: "An answer in Anthropic's Messages format.",
    request: messageFields,
    example: { max_tokens: 100, messages: [user] },
    streams: true,
    answer: answers.message,
  },
  "POST /v1/messages/count_tokens": {
    summary: "What a message's prompt would take of the context.",
    request: messageFields,
    example: { messages: [user] },
    answer: answers.messageTokens,
  },
  "GET /v1/models": {
    summary: "The models that requests may name; with `--models-dir`, all of the folder.",
    answer: answers.models,
  },
  "GET /v1/models/{model}": {
    summary: "A model, by its name or `default`.",
    answer: answers.model,
  },
  "GET /api/models": {
    summary: "The models and which of them are in memory.",
    answer: apiAnswers.models,
  },
  "POST /v1/models/load": {
    summary: "Brings a model into memory before it is used.",
    request: loadFields,
    answer: apiAnswers.done,
  },
  "POST /v1/models/unload": {
    summary: "Takes a model out of memory, once nobody uses it. With `--models-dir`.",
    request: loadFields,
    answer: apiAnswers.done,
  },
  "GET /props": {
    summary: "The defaults of a request, and the chat template.",
    answer: answers.props,
  },
  "GET /slots": {
    summary: "A slot for each sequence that may run at once; `?fail_on_no_slot=1`: 503 if all run.",
    answer: answers.slots,
  },
  "GET /health": {
    summary: "Whether the server lives: 503 once the inference thread hangs. Needs no key.",
    answer: answers.health,
  },
  "GET /ready": {
    summary: "Whether requests should be sent here now, else 503. Needs no key.",
    answer: answers.ready,
  },
  "GET /metrics": { summary: "Prometheus metrics.", answer: null },
  "GET /openapi.json": { summary: "This document.", answer: object },
  ...ollamaOperations,
  ...responseOperations,
  ...apiOperations,
};
