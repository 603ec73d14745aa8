/** Items, response objects and events of the Responses API, and what a call is to its client. */

import type { Schema } from "../body/field.ts";
import type { ChatUsage } from "../../chat/types.ts";
import type { JsonObject } from "../../json.ts";
import {
  answer,
  boolean,
  choice,
  contentToken,
  list,
  metadata,
  nullable,
  object,
  oneOf,
  real,
  type Shape,
  string,
  type ValueOf,
  whole,
  pageShape,
} from "../body/shapes.ts";

const itemStatus = choice("in_progress", "completed", "incomplete");

const messageItem = answer({
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
});

const reasoningItem = answer(
  {
    id: string,
    type: choice("reasoning"),
    status: itemStatus,
    summary: list(object),
    content: list(answer({ type: choice("reasoning_text"), text: string })),
  },
  // The same text, where the request's `include` names it.
  { encrypted_content: string },
);

/** Of a tool that the request gave inside of a namespace. */
const inNamespace = { namespace: string };

const functionCallItem = answer(
  {
    id: string,
    type: choice("function_call"),
    status: itemStatus,
    call_id: string,
    name: string,
    arguments: string,
  },
  inNamespace,
);

const customToolCallItem = answer(
  {
    id: string,
    type: choice("custom_tool_call"),
    status: itemStatus,
    call_id: string,
    name: string,
    // Text of any form.
    input: string,
  },
  inNamespace,
);

const mcpCallItem = answer({
  id: string,
  type: choice("mcp_call"),
  status: choice("in_progress", "completed", "incomplete", "calling", "failed"),
  approval_request_id: nullable(string),
  server_label: string,
  name: string,
  arguments: string,
  output: nullable(string),
  error: nullable(string),
});

const mcpListToolsItem = answer({
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
});

const mcpApprovalRequestItem = answer({
  id: string,
  type: choice("mcp_approval_request"),
  server_label: string,
  name: string,
  arguments: string,
});

const compactionItem = answer({
  id: string,
  type: choice("compaction"),
  encrypted_content: string,
});

const outputItem = oneOf(
  messageItem,
  reasoningItem,
  functionCallItem,
  customToolCallItem,
  mcpCallItem,
  mcpListToolsItem,
  mcpApprovalRequestItem,
  compactionItem,
);

export const responseUsage = answer({
  input_tokens: whole,
  input_tokens_details: answer({ cached_tokens: whole, cache_write_tokens: whole }),
  output_tokens: whole,
  output_tokens_details: answer({ reasoning_tokens: whole }),
  total_tokens: whole,
});

/** Over all rounds, tool results included; see `wireUsage` of chat completions. */
export function wireResponseUsage(usage: ChatUsage): ValueOf<typeof responseUsage> {
  const input = usage.promptTokens + usage.resumedTokens;
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage.cachedTokens,
      cache_write_tokens: Math.max(0, input - usage.cachedTokens),
    },
    output_tokens: usage.generatedTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
    total_tokens: input + usage.generatedTokens,
  };
}

/** All keys are always there: clients' schemas demand them, null or not. */
export const response = answer(
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
    // As it came.
    tool_choice: oneOf(string, object) as Shape<unknown>,
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
  // Not of OpenAI's format, and only if there are any: what the answer lacks, and why.
  { warnings: list(string) },
);

export type ItemStatus = ValueOf<typeof itemStatus>;
export type MessageItem = ValueOf<typeof messageItem>;
export type ReasoningItem = ValueOf<typeof reasoningItem>;
export type FunctionCallItem = ValueOf<typeof functionCallItem>;
export type CustomToolCallItem = ValueOf<typeof customToolCallItem>;
export type McpCallItem = ValueOf<typeof mcpCallItem>;
export type McpListToolsItem = ValueOf<typeof mcpListToolsItem>;
export type CompactionItem = ValueOf<typeof compactionItem>;
export type OutputItem = ValueOf<typeof outputItem>;
export type ResponseObject = ValueOf<typeof response>;
export type ResponseStatus = ResponseObject["status"];

/** An item as a client sent it, checked and with an id; what is not read is kept. */
export type Item = { id: string; type: string } & JsonObject;

/** As it was sent or generated. */
export const itemShape: Schema = {
  ...answer({ id: string, type: string }),
  additionalProperties: true,
};
export const itemPage = pageShape(itemShape);

/** One server-sent event; `sequence_number` counts from 0 in each stream. */
export interface WireEvent {
  type: string;
  sequence_number: number;
  [key: string]: unknown;
}

/** It tells the same if it comes again, as long as no other event has followed. */
export function isRepeatable(event: WireEvent): boolean {
  return event.type === "response.in_progress";
}

/** An event without the number that its stream gives it. */
export type UnnumberedEvent = { type: string; [key: string]: unknown };

/** Who runs a call, and its name for the client. */
export type CallPresentation =
  | { kind: "function" | "custom"; name: string; namespace?: string | undefined }
  | { kind: "mcp"; server: string; name: string; needsApproval: boolean };
