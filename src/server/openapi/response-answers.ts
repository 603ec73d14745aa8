/** What /v1/responses and /v1/conversations answer with, beside `answers.ts`. */

import type { Schema } from "../body/field.ts";
import { answer, choice, contentToken, pageOf, real, whole, yes } from "./answers.ts";
import {
  boolean,
  constant,
  list,
  metadata,
  nullable,
  object,
  oneOf,
  string,
} from "./json-schema.ts";

const itemStatus = choice("in_progress", "completed", "incomplete");
const outputItem = oneOf(
  answer({
    id: string,
    type: constant("message"),
    status: itemStatus,
    role: constant("assistant"),
    content: list(
      answer({
        type: constant("output_text"),
        text: string,
        annotations: list(object),
        logprobs: list(contentToken),
      }),
    ),
  }),
  answer(
    {
      id: string,
      type: constant("reasoning"),
      status: itemStatus,
      summary: list(object),
      content: list(answer({ type: constant("reasoning_text"), text: string })),
    },
    { encrypted_content: string },
  ),
  answer(
    {
      id: string,
      type: constant("function_call"),
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
      type: constant("custom_tool_call"),
      status: itemStatus,
      call_id: string,
      name: string,
      input: string,
    },
    { namespace: string },
  ),
  answer({
    id: string,
    type: constant("mcp_call"),
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
    type: constant("mcp_list_tools"),
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
    type: constant("mcp_approval_request"),
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

export const response = answer(
  {
    id: string,
    object: constant("response"),
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
    service_tier: constant("default"),
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
/** Sent only to clients that asked for them: `--responses-events`, `fermata.events`. */
export const extendedEvents: Record<string, Schema> = {
  "response.tool_call.delta": {
    ...answer({
      type: constant("response.tool_call.delta"),
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
      type: constant("response.tool_call.completed"),
      sequence_number: whole,
      response: ofResponse,
      call_id: string,
    }),
    description: "With events: extended: the arguments are whole, the client may run the call.",
  },
};

/** The outputs that a held response waited for came: that one goes on. */
const goesOn = answer({ id: string, status: constant("in_progress") });
export const created = oneOf(response, goesOn);
export const delivered = goesOn;
export const deletedResponse = answer({ id: string, object: constant("response"), deleted: yes });
export const compaction = answer({
  id: string,
  object: constant("response.compaction"),
  created_at: whole,
  output: list(object),
  usage: responseUsage,
});
export const inputTokens = answer({
  object: constant("response.input_tokens"),
  input_tokens: whole,
});

/** As it was sent or generated. */
export const item: Schema = {
  ...answer({ id: string, type: string }),
  additionalProperties: true,
};
export const itemPage = pageOf(item);
export const conversation = answer({
  id: string,
  object: constant("conversation"),
  created_at: whole,
  metadata,
});
export const deletedConversation = answer({
  id: string,
  object: constant("conversation.deleted"),
  deleted: yes,
});
