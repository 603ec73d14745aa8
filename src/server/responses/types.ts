/** Items, response objects and events of the Responses API. Type-only. */

import type { JsonObject } from "../body/field.ts";
import type * as schemas from "../openapi/responses.ts";
import type { Of } from "../openapi/words.ts";

export type ItemStatus = Of<typeof schemas.itemStatus>;
export type MessageItem = Of<typeof schemas.messageItem>;
export type ReasoningItem = Of<typeof schemas.reasoningItem>;
export type FunctionCallItem = Of<typeof schemas.functionCallItem>;
export type CustomToolCallItem = Of<typeof schemas.customToolCallItem>;
export type McpCallItem = Of<typeof schemas.mcpCallItem>;
export type McpListToolsItem = Of<typeof schemas.mcpListToolsItem>;
export type McpApprovalRequestItem = Of<typeof schemas.mcpApprovalRequestItem>;
export type OutputItem = Of<typeof schemas.outputItem>;
export type WireResponseUsage = Of<typeof schemas.responseUsage>;
export type ResponseObject = Of<typeof schemas.response>;
export type ResponseStatus = ResponseObject["status"];

/** An item as a client sent it, checked and with an id; what is not read is kept. */
export type Item = { id: string; type: string } & JsonObject;

/** One server-sent event; `sequence_number` counts from 0 in each stream. */
export interface WireEvent {
  type: string;
  sequence_number: number;
  [key: string]: unknown;
}

/** An event without the number that its stream gives it. */
export type UnnumberedEvent = { type: string; [key: string]: unknown };
