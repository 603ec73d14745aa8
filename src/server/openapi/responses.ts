/** What /openapi.json says of the routes of Responses, and of the conversations that they keep. */

import type { Schema } from "../body/field.ts";
import { pageQuery } from "../body/stored.ts";
import {
  conversationLabelFields,
  newConversationFields,
  newItemsFields,
  responseFields,
} from "../responses/fields.ts";
import { toolOutputFields } from "../responses/held.ts";
import { response, responseUsage } from "../responses/types.ts";
import {
  answer,
  boolean,
  choice,
  inputTokens,
  list,
  metadata,
  object,
  oneOf,
  pageOf,
  string,
  whole,
  yes,
} from "../body/shapes.ts";
import type { Operation } from "./operation.ts";

const ofResponse = answer({ id: string });

/** The outputs that a held response waited for came: that one goes on. */
const goesOn = answer({ id: string, status: choice("in_progress") });

/** As it was sent or generated. */
const item: Schema = {
  ...answer({ id: string, type: string }),
  additionalProperties: true,
};

const itemPage = pageOf(item);

const conversation = answer({
  id: string,
  object: choice("conversation"),
  created_at: whole,
  metadata,
});

const createResponse: Operation = {
  summary: "An answer in OpenAI's Responses format.",
  request: responseFields,
  example: { input: "Hello!" },
  answer: oneOf(response, goesOn),
  /** Sent only to clients that asked for them: `--responses-events`, `fermata.events`. */
  streams: {
    "response.tool_call.delta": {
      ...answer({
        type: choice("response.tool_call.delta"),
        sequence_number: whole,
        response: ofResponse,
        item_id: string,
        call_id: string,
        name: string,
        delta: {
          ...string,
          description: "Only what is new; a call's deltas, joined, are its arguments",
        },
      }),
      description: "With events: extended, before each delta of OpenAI's of a client's call.",
    },
    "response.tool_call.completed": {
      ...answer({
        type: choice("response.tool_call.completed"),
        sequence_number: whole,
        response: ofResponse,
        call_id: string,
      }),
      description: "With events: extended: the arguments are whole, the client may run the call.",
    },
  },
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
    answer: response,
    query: { stream: boolean, starting_after: { type: "integer", minimum: 0 } },
  },
  "DELETE /v1/responses/{id}": {
    summary: "Deletes a stored response.",
    answer: answer({ id: string, object: choice("response"), deleted: yes }),
  },
  "POST /v1/responses/{id}/cancel": {
    summary: "Cancels a background response.",
    answer: response,
  },
  "GET /v1/responses/{id}/input_items": {
    summary: "What a stored response was given.",
    answer: itemPage,
    query: pageQuery,
  },
  "POST /v1/responses/{id}/tool_outputs": {
    summary: "The result of a call that a held response waits for.",
    request: toolOutputFields,
    answer: goesOn,
  },
  "POST /v1/responses/compact": {
    summary: "A conversation as its users' words and a summary.",
    request: responseFields,
    example: { model: "default", input: "Hello!" },
    answer: answer({
      id: string,
      object: choice("response.compaction"),
      created_at: whole,
      output: list(object),
      usage: responseUsage,
    }),
  },
  "POST /v1/responses/input_tokens": {
    summary: "What a request would take of the context.",
    request: responseFields,
    example: { input: "Hello!" },
    answer: inputTokens,
  },
  "POST /v1/conversations": {
    summary: "Creates a conversation.",
    request: newConversationFields,
    example: { metadata: { topic: "harbour" } },
    answer: conversation,
  },
  "GET /v1/conversations/{id}": {
    summary: "A conversation.",
    answer: conversation,
  },
  "POST /v1/conversations/{id}": {
    summary: "Replaces a conversation's metadata.",
    request: conversationLabelFields,
    answer: conversation,
  },
  "DELETE /v1/conversations/{id}": {
    summary: "Deletes a conversation.",
    answer: answer({
      id: string,
      object: choice("conversation.deleted"),
      deleted: yes,
    }),
  },
  "GET /v1/conversations/{id}/items": {
    summary: "The items of a conversation.",
    answer: itemPage,
    query: pageQuery,
  },
  "POST /v1/conversations/{id}/items": {
    summary: "Adds items to a conversation.",
    request: newItemsFields,
    answer: itemPage,
  },
  "GET /v1/conversations/{id}/items/{item}": { summary: "One item.", answer: item },
  "DELETE /v1/conversations/{id}/items/{item}": {
    summary: "Removes one item.",
    answer: conversation,
  },
};
