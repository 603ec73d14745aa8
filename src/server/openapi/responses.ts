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
import {
  answer,
  boolean,
  choice,
  contentToken,
  inputTokens,
  list,
  metadata,
  nullable,
  object,
  oneOf,
  pageOf,
  real,
  string,
  whole,
  yes,
  type Operation,
} from "./words.ts";

const itemStatus = choice("in_progress", "completed", "incomplete");

const outputItem = oneOf(
  answer({
    id: string,
    type: choice("message"),
    status: itemStatus,
    role: choice("assistant"),
    content: list(
      answer({
        type: choice("output_text"),
        text: string,
        annotations: list(object),
        logprobs: list(contentToken),
      }),
    ),
  }),
  answer(
    {
      id: string,
      type: choice("reasoning"),
      status: itemStatus,
      summary: list(object),
      content: list(answer({ type: choice("reasoning_text"), text: string })),
    },
    { encrypted_content: string },
  ),
  answer(
    {
      id: string,
      type: choice("function_call"),
      status: itemStatus,
      call_id: string,
      name: string,
      arguments: string,
    },
    { namespace: string },
  ),
  answer(
    {
      id: string,
      type: choice("custom_tool_call"),
      status: itemStatus,
      call_id: string,
      name: string,
      input: string,
    },
    { namespace: string },
  ),
  answer({
    id: string,
    type: choice("mcp_call"),
    status: choice("in_progress", "completed", "incomplete", "calling", "failed"),
    approval_request_id: nullable(string),
    server_label: string,
    name: string,
    arguments: string,
    output: nullable(string),
    error: nullable(string),
  }),
  answer({
    id: string,
    type: choice("mcp_list_tools"),
    server_label: string,
    tools: list(
      answer({
        name: string,
        description: nullable(string),
        input_schema: object,
        annotations: nullable(object),
      }),
    ),
    error: nullable(string),
  }),
  answer({
    id: string,
    type: choice("mcp_approval_request"),
    server_label: string,
    name: string,
    arguments: string,
  }),
);

const responseUsage = answer({
  input_tokens: whole,
  input_tokens_details: answer({ cached_tokens: whole, cache_write_tokens: whole }),
  output_tokens: whole,
  output_tokens_details: answer({ reasoning_tokens: whole }),
  total_tokens: whole,
});

const response = answer(
  {
    id: string,
    object: choice("response"),
    created_at: whole,
    completed_at: nullable(whole),
    status: choice("queued", "in_progress", "completed", "incomplete", "failed", "cancelled"),
    background: boolean,
    error: nullable(answer({ code: string, message: string })),
    incomplete_details: nullable(answer({ reason: choice("max_output_tokens", "content_filter") })),
    instructions: nullable(string),
    max_output_tokens: nullable(whole),
    max_tool_calls: nullable(whole),
    model: string,
    output: list(outputItem),
    parallel_tool_calls: boolean,
    previous_response_id: nullable(string),
    conversation: nullable(answer({ id: string })),
    prompt_cache_key: nullable(string),
    reasoning: answer({ effort: nullable(string), summary: nullable(string) }),
    safety_identifier: nullable(string),
    service_tier: choice("default"),
    store: boolean,
    temperature: real,
    text: answer({ format: object }, { verbosity: string }),
    tool_choice: oneOf(string, object),
    tools: list(object),
    top_logprobs: whole,
    top_p: real,
    presence_penalty: real,
    frequency_penalty: real,
    truncation: choice("auto", "disabled"),
    usage: nullable(responseUsage),
    user: nullable(string),
    metadata,
  },
  { warnings: list(string) },
);

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
