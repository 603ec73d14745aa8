/** What /openapi.json says of the routes of Responses, and of the conversations that they keep. */

import { pageQuery } from "../body/stored.ts";
import {
  conversationLabelFields,
  newConversationFields,
  newItemsFields,
  responseFields,
} from "../responses/fields.ts";
import { toolOutputFields } from "../responses/held.ts";
import * as responseAnswers from "./response-answers.ts";
import { boolean } from "./json-schema.ts";
import type { Operation } from "./operation.ts";

const createResponse: Operation = {
  summary: "An answer in OpenAI's Responses format.",
  request: responseFields,
  example: { input: "Hello!" },
  answer: responseAnswers.created,
  streams: responseAnswers.extendedEvents,
};

export const responseOperations: Readonly<Record<string, Operation>> = {
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
};
