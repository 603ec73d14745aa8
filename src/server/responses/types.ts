/** Items, response objects and events of the Responses API, and what a call is to its client. Type-only. */

import type { JsonObject } from "../body/field.ts";
import type { WireContentToken } from "../answer/logprobs.ts";

export type ItemStatus = "in_progress" | "completed" | "incomplete";

export interface OutputText {
  type: "output_text";
  text: string;
  annotations: never[];
  logprobs: WireContentToken[];
}

export interface MessageItem {
  id: string;
  type: "message";
  status: ItemStatus;
  role: "assistant";
  content: OutputText[];
}

export interface ReasoningItem {
  id: string;
  type: "reasoning";
  summary: never[];
  content: { type: "reasoning_text"; text: string }[];
  /** The same text, where the request's `include` names it. */
  encrypted_content?: string;
  status: ItemStatus;
}

export interface FunctionCallItem {
  id: string;
  type: "function_call";
  status: ItemStatus;
  call_id: string;
  name: string;
  arguments: string;
  /** Of a tool that the request gave inside of a namespace. */
  namespace?: string;
}

export interface CustomToolCallItem {
  id: string;
  type: "custom_tool_call";
  status: ItemStatus;
  call_id: string;
  name: string;
  /** Text of any form. */
  input: string;
  namespace?: string;
}

export interface McpCallItem {
  id: string;
  type: "mcp_call";
  status: "in_progress" | "completed" | "incomplete" | "calling" | "failed";
  approval_request_id: string | null;
  server_label: string;
  name: string;
  arguments: string;
  output: string | null;
  error: string | null;
}

export interface McpListToolsItem {
  id: string;
  type: "mcp_list_tools";
  server_label: string;
  tools: {
    name: string;
    description: string | null;
    input_schema: JsonObject;
    annotations: null;
  }[];
  error: string | null;
}

export interface McpApprovalRequestItem {
  id: string;
  type: "mcp_approval_request";
  server_label: string;
  name: string;
  arguments: string;
}

export interface CompactionItem {
  id: string;
  type: "compaction";
  encrypted_content: string;
}

export type OutputItem =
  | MessageItem
  | ReasoningItem
  | FunctionCallItem
  | CustomToolCallItem
  | McpCallItem
  | McpListToolsItem
  | McpApprovalRequestItem
  | CompactionItem;

/** An item as a client sent it, checked and with an id; what is not read is kept. */
export type Item = { id: string; type: string } & JsonObject;

export type ResponseStatus =
  | "queued"
  | "in_progress"
  | "completed"
  | "incomplete"
  | "failed"
  | "cancelled";

export interface WireResponseUsage {
  input_tokens: number;
  input_tokens_details: { cached_tokens: number; cache_write_tokens: number };
  output_tokens: number;
  output_tokens_details: { reasoning_tokens: number };
  total_tokens: number;
}

/** All keys are always there: clients' schemas demand them, null or not. */
export interface ResponseObject {
  id: string;
  object: "response";
  created_at: number;
  completed_at: number | null;
  status: ResponseStatus;
  background: boolean;
  error: { code: string; message: string } | null;
  incomplete_details: { reason: "max_output_tokens" | "content_filter" } | null;
  /** Not of OpenAI's format, and only if there are any: what the answer lacks, and why. */
  warnings?: string[];
  instructions: string | null;
  max_output_tokens: number | null;
  max_tool_calls: number | null;
  model: string;
  output: OutputItem[];
  parallel_tool_calls: boolean;
  previous_response_id: string | null;
  conversation: { id: string } | null;
  prompt_cache_key: string | null;
  reasoning: { effort: string | null; summary: string | null };
  safety_identifier: string | null;
  service_tier: "default";
  store: boolean;
  temperature: number;
  text: { format: JsonObject; verbosity?: string };
  tool_choice: unknown;
  tools: JsonObject[];
  top_logprobs: number;
  top_p: number;
  presence_penalty: number;
  frequency_penalty: number;
  truncation: "auto" | "disabled";
  usage: WireResponseUsage | null;
  user: string | null;
  metadata: Record<string, string>;
}

/** One server-sent event; `sequence_number` counts from 0 in each stream. */
export interface WireEvent {
  type: string;
  sequence_number: number;
  [key: string]: unknown;
}

/** An event without the number that its stream gives it. */
export type UnnumberedEvent = { type: string; [key: string]: unknown };

/** Who runs a call, and its name for the client. */
export type CallPresentation =
  | { kind: "function" | "custom"; name: string; namespace?: string | undefined }
  | { kind: "mcp"; server: string; name: string; needsApproval: boolean };
