/** What /openapi.json says of each route. A route without an entry fails test/contract/openapi.test.ts. */

import type { FieldTable, Schema } from "../body/field.ts";
import { pageQuery } from "../body/stored.ts";
import { loadFields } from "../about/loading.ts";
import { chatCompletionFields } from "../chat-completions/fields.ts";
import { labelFields } from "../chat-completions/stored-routes.ts";
import { completionFields } from "../completions/fields.ts";
import { infillFields, nativeCompletionFields } from "../completions/native-fields.ts";
import { decisionFields } from "../conversations/approvals.ts";
import { conversationFields, conversationPatchFields } from "../conversations/fields.ts";
import { runFields } from "../conversations/run-request.ts";
import { embeddingFields, nativeEmbeddingFields } from "../embeddings/fields.ts";
import { messageFields } from "../messages/fields.ts";
import {
  conversationLabelFields,
  newConversationFields,
  newItemsFields,
  responseFields,
} from "../responses/fields.ts";
import { rerankFields } from "../rerank/fields.ts";
import { toolOutputFields } from "../responses/held.ts";
import { chatFields, embedFields, generateFields, showFields } from "../ollama/fields.ts";
import { detokenizeFields, templateBodyFields, tokenizeFields } from "../tokens/fields.ts";
import * as answers from "./answers.ts";
import * as apiAnswers from "./api-answers.ts";
import * as ollamaAnswers from "./ollama-answers.ts";
import * as responseAnswers from "./response-answers.ts";
import { boolean, object, string } from "./json-schema.ts";

export interface Operation {
  summary: string;
  /** Fields of the request's body. None: no body is read. */
  request?: FieldTable;
  /** A request that succeeds. */
  example?: object;
  /** Of the path's query, all optional. */
  query?: Record<string, Schema>;
  /** Of a success. Default 200. */
  status?: 101 | 200 | 201 | 202 | 204;
  /** Body of a success that is not streamed; null: not JSON, or none. */
  answer: Schema | null;
  /** May answer with server-sent events. Those that no other server's documentation has stand here, by type. */
  streams?: true | Record<string, Schema>;
  /** May answer with lines of JSON, each of them as the body of an answer that is not streamed. */
  lines?: true;
}

const user = { role: "user", content: "Hello!" };

const createResponse: Operation = {
  summary: "An answer in OpenAI's Responses format.",
  request: responseFields,
  example: { input: "Hello!" },
  answer: responseAnswers.created,
  streams: responseAnswers.extendedEvents,
};

/** By method and path. */
const rerank: Operation = {
  summary: "How well documents answer a query, the best first, if a model that ranks is loaded.",
  request: rerankFields,
  example: { query: "Where is the key?", documents: ["Under the mat.", "It rains."] },
  answer: answers.ranking,
};

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
  "POST /api/chat": {
    summary: "An answer in Ollama's format; a JSON object a line, unless `stream` is false.",
    request: chatFields,
    example: { model: "default", messages: [user], stream: false },
    lines: true,
    answer: ollamaAnswers.chat,
  },
  "POST /api/generate": {
    summary: "An answer to one prompt in Ollama's format.",
    request: generateFields,
    example: { model: "default", prompt: "Hello!", stream: false },
    lines: true,
    answer: ollamaAnswers.generated,
  },
  "POST /api/embed": {
    summary: "Vectors of texts in Ollama's format, if an embedding model is loaded.",
    request: embedFields(),
    answer: ollamaAnswers.embeddings,
  },
  "GET /api/version": {
    summary: "The version of Ollama whose API this follows.",
    answer: ollamaAnswers.version,
  },
  "GET /api/tags": {
    summary: "The model and the agents, in Ollama's format.",
    answer: ollamaAnswers.tags,
  },
  "GET /api/ps": {
    summary: "The loaded model, in Ollama's format.",
    answer: ollamaAnswers.loadedModels,
  },
  "POST /api/show": {
    summary: "What a model is and can do, in Ollama's format.",
    request: showFields,
    example: { model: "default" },
    answer: ollamaAnswers.shownModel,
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
  "POST /v1/responses": createResponse,
  "POST /codex/responses": createResponse,
  "GET /v1/responses": {
    summary: "Opens a WebSocket on which each message is a request (WebSocket mode).",
    status: 101,
    answer: null,
  },
  "GET /v1/responses/{id}": {
    summary: "A stored response; as a stream from `starting_after` on.",
    streams: true,
    answer: responseAnswers.response,
    query: { stream: boolean, starting_after: { type: "integer", minimum: 0 } },
  },
  "DELETE /v1/responses/{id}": {
    summary: "Deletes a stored response.",
    answer: responseAnswers.deletedResponse,
  },
  "POST /v1/responses/{id}/cancel": {
    summary: "Cancels a background response.",
    answer: responseAnswers.response,
  },
  "GET /v1/responses/{id}/input_items": {
    summary: "What a stored response was given.",
    answer: responseAnswers.itemPage,
    query: pageQuery,
  },
  "POST /v1/responses/{id}/tool_outputs": {
    summary: "The result of a call that a held response waits for.",
    request: toolOutputFields,
    answer: responseAnswers.delivered,
  },
  "POST /v1/responses/compact": {
    summary: "A conversation as its users' words and a summary.",
    request: responseFields,
    example: { model: "default", input: "Hello!" },
    answer: responseAnswers.compaction,
  },
  "POST /v1/responses/input_tokens": {
    summary: "What a request would take of the context.",
    request: responseFields,
    example: { input: "Hello!" },
    answer: responseAnswers.inputTokens,
  },
  "POST /v1/conversations": {
    summary: "Creates a conversation.",
    request: newConversationFields,
    example: { metadata: { topic: "harbour" } },
    answer: responseAnswers.conversation,
  },
  "GET /v1/conversations/{id}": {
    summary: "A conversation.",
    answer: responseAnswers.conversation,
  },
  "POST /v1/conversations/{id}": {
    summary: "Replaces a conversation's metadata.",
    request: conversationLabelFields,
    answer: responseAnswers.conversation,
  },
  "DELETE /v1/conversations/{id}": {
    summary: "Deletes a conversation.",
    answer: responseAnswers.deletedConversation,
  },
  "GET /v1/conversations/{id}/items": {
    summary: "The items of a conversation.",
    answer: responseAnswers.itemPage,
    query: pageQuery,
  },
  "POST /v1/conversations/{id}/items": {
    summary: "Adds items to a conversation.",
    request: newItemsFields,
    answer: responseAnswers.itemPage,
  },
  "GET /v1/conversations/{id}/items/{item}": { summary: "One item.", answer: responseAnswers.item },
  "DELETE /v1/conversations/{id}/items/{item}": {
    summary: "Removes one item.",
    answer: responseAnswers.conversation,
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
  "GET /api/conversations": {
    summary: "Branched conversations, the last changed first.",
    query: { limit: { type: "integer", minimum: 1, maximum: 100 }, before: string },
    answer: apiAnswers.conversations,
  },
  "POST /api/conversations": {
    summary: "Creates a branched conversation.",
    request: conversationFields,
    example: { title: "Harbour" },
    status: 201,
    answer: apiAnswers.conversation,
  },
  "GET /api/conversations/{id}": {
    summary: "A conversation with the messages of all branches.",
    answer: apiAnswers.conversation,
  },
  "PATCH /api/conversations/{id}": {
    summary: "Renames a conversation, changes its settings or the branch that is shown.",
    request: conversationPatchFields,
    answer: apiAnswers.conversation,
  },
  "DELETE /api/conversations/{id}": {
    summary: "Deletes a conversation and cancels its runs.",
    status: 204,
    answer: null,
  },
  "POST /api/conversations/{id}/runs": {
    summary: "Begins the answer to a message; it goes on without a viewer.",
    request: runFields,
    status: 202,
    answer: apiAnswers.runStarted,
  },
  "POST /api/conversations/{id}/runs/{run_id}/cancel": {
    summary: "Cancels a run.",
    status: 202,
    answer: apiAnswers.cancelledRun,
  },
  "GET /api/conversations/{id}/stream": {
    summary: "The events of a run, those after Last-Event-ID; 204 after the last.",
    query: { run_id: string, details: { type: "string", enum: ["0", "1"] }, token: string },
    streams: true,
    answer: null,
  },
  "GET /api/engine": {
    summary: "Sequences, cells and rates of the engine.",
    answer: apiAnswers.engine,
  },
  "GET /api/engine/stream": {
    summary: "The same as a stream, twice a second.",
    query: { token: string },
    streams: true,
    answer: null,
  },
  "GET /api/traces": {
    summary: "How the last answers of this key came about, the newest first.",
    query: { limit: pageQuery["limit"]! },
    answer: apiAnswers.traces,
  },
  "GET /api/traces/{id}": {
    summary: "How one answer came about: its phases, its calls, and the rows that were computed.",
    answer: apiAnswers.trace,
  },
  "POST /api/session": {
    summary: "Sets a cookie that stands for the API key.",
    answer: apiAnswers.session,
  },
  "DELETE /api/session": { summary: "Takes the cookie back.", status: 204, answer: null },
  "POST /api/stream-tokens": {
    summary: "A short-lived token for `?token=`, for clients that send no header.",
    answer: apiAnswers.streamToken,
  },
  "GET /api/tools": {
    summary: "The tools that this server runs, and the state of their servers.",
    answer: apiAnswers.tools,
  },
  "GET /api/approvals": {
    summary:
      "Calls of your requests that wait for a person's consent, or for the answer to a question of their server.",
    answer: apiAnswers.approvals,
  },
  "POST /api/approvals/{call_id}": {
    summary: "A person's answer to a call that waits for it.",
    request: decisionFields,
    answer: apiAnswers.approvalDecision,
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
};
