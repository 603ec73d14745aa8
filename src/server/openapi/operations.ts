/** What /openapi.json says of each route. A route without an entry fails test/contract/openapi.test.ts. */

import { messageParameters } from "../anthropic/parameters.ts";
import { chatCompletionParameters } from "../openai/parameters/chat-completions.ts";
import type { ParameterTable } from "../openai/parameters/parameter.ts";
import { responseParameters } from "../openai/parameters/responses.ts";
import {
  chatTypes,
  completionBody,
  conversationMetadata,
  detokenizeBody,
  embeddingBody,
  messageTypes,
  newConversation,
  newItems,
  responseTypes,
  type Schema,
  templateBody,
  tokenizeBody,
  toolOutput,
} from "./schemas.ts";

export interface Operation {
  summary: string;
  /** Body of the request. None: no body is read. */
  request?: Schema;
  /** A request that is answered with 200. */
  example?: object;
  /** May answer with server-sent events. */
  streams?: true;
  /** Not JSON. */
  answers?: "text/plain";
}

const user = { role: "user", content: "Hello!" };

const chat = fieldsOf(chatCompletionParameters, chatTypes, ["messages"]);
const message = fieldsOf(messageParameters, messageTypes, ["messages"]);
const response = fieldsOf(responseParameters, responseTypes, []);

const createResponse: Operation = {
  summary: "An answer in OpenAI's Responses format.",
  request: response,
  example: { input: "Hello!" },
  streams: true,
};

/** By method and path. */
export const operations: Readonly<Record<string, Operation>> = {
  "POST /v1/chat/completions": {
    summary: "An answer in OpenAI's Chat Completions format.",
    request: chat,
    example: { messages: [user] },
    streams: true,
  },
  "POST /v1/completions": {
    summary: "A text continued, in OpenAI's legacy Completions format.",
    request: completionBody,
    streams: true,
  },
  "POST /v1/embeddings": {
    summary: "Vectors of texts, if an embedding model is loaded.",
    request: embeddingBody,
  },
  "POST /tokenize": { summary: "A text as tokens.", request: tokenizeBody },
  "POST /detokenize": { summary: "Tokens as text.", request: detokenizeBody },
  "POST /apply-template": {
    summary: "The prompt that a chat completion would begin with.",
    request: templateBody,
  },
  "POST /v1/responses": createResponse,
  "POST /codex/responses": createResponse,
  "GET /v1/responses/{id}": {
    summary: "A stored response; as a stream from `starting_after` on.",
    streams: true,
  },
  "DELETE /v1/responses/{id}": { summary: "Deletes a stored response." },
  "POST /v1/responses/{id}/cancel": { summary: "Cancels a background response." },
  "GET /v1/responses/{id}/input_items": { summary: "What a stored response was given." },
  "POST /v1/responses/{id}/tool_outputs": {
    summary: "The result of a call that a held response waits for.",
    request: toolOutput,
  },
  "POST /v1/responses/compact": {
    summary: "A conversation as its users' words and a summary.",
    request: response,
    example: { model: "default", input: "Hello!" },
  },
  "POST /v1/responses/input_tokens": {
    summary: "What a request would take of the context.",
    request: response,
    example: { input: "Hello!" },
  },
  "POST /v1/conversations": {
    summary: "Creates a conversation.",
    request: newConversation,
    example: { metadata: { topic: "harbour" } },
  },
  "GET /v1/conversations/{id}": { summary: "A conversation." },
  "POST /v1/conversations/{id}": {
    summary: "Replaces a conversation's metadata.",
    request: conversationMetadata,
  },
  "DELETE /v1/conversations/{id}": { summary: "Deletes a conversation." },
  "GET /v1/conversations/{id}/items": { summary: "The items of a conversation." },
  "POST /v1/conversations/{id}/items": {
    summary: "Adds items to a conversation.",
    request: newItems,
  },
  "GET /v1/conversations/{id}/items/{item}": { summary: "One item." },
  "DELETE /v1/conversations/{id}/items/{item}": { summary: "Removes one item." },
  "POST /v1/messages": {
    summary: "An answer in Anthropic's Messages format.",
    request: message,
    example: { max_tokens: 100, messages: [user] },
    streams: true,
  },
  "POST /v1/messages/count_tokens": {
    summary: "What a message's prompt would take of the context.",
    request: message,
    example: { messages: [user] },
  },
  "GET /v1/models": { summary: "The loaded model." },
  "GET /v1/models/{model}": { summary: "The loaded model, by its name or `default`." },
  "GET /health": { summary: "Whether requests are taken. Needs no key." },
  "GET /metrics": { summary: "Prometheus metrics.", answers: "text/plain" },
  "GET /openapi.json": { summary: "This document." },
};

/** The fields a parser reads, each with what it does. `types` has one entry for each that is honoured. */
function fieldsOf(
  table: ParameterTable,
  types: Record<string, Schema>,
  required: string[],
): Schema {
  const properties: Record<string, Schema> = {};
  for (const [name, parameter] of Object.entries(table)) {
    if (parameter.effect === "honoured") {
      const { note } = parameter;
      properties[name] = { ...types[name], ...(note === undefined ? {} : { description: note }) };
    } else if (parameter.effect === "ignored") {
      properties[name] = { description: `Without effect: ${parameter.why}.` };
    }
  }
  return { type: "object", properties, required };
}
