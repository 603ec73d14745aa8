/** `tool_calls` of an assistant message in a client's history. */

import type { ToolCall } from "../../chat/types.ts";
import { fieldError, isAbsent, isObject, kindOf } from "./fields.ts";

export function parseToolCalls(value: unknown, field: string): ToolCall[] {
  if (isAbsent(value)) return [];
  if (!Array.isArray(value))
    throw fieldError(
      "invalid_type",
      field,
      `must be an array, not ${kindOf(value)}`,
      "Send an array of calls",
    );
  return value.map((call, index) => parseToolCall(call, `${field}[${index}]`));
}

/** Arguments stay as they came, valid JSON or not: they are history, and were once a model's output. */
function parseToolCall(call: unknown, field: string): ToolCall {
  if (!isObject(call))
    throw fieldError(
      "invalid_type",
      field,
      `must be an object, not ${kindOf(call)}`,
      "Send the call as it was received",
    );
  if (!isAbsent(call["type"]) && call["type"] !== "function") {
    throw fieldError(
      "unsupported_value",
      `${field}.type`,
      "is not a function call",
      'Send "function"',
    );
  }
  const id = readString(call["id"], `${field}.id`);
  const target = call["function"];
  if (!isObject(target)) {
    const code = target === undefined ? "missing_field" : "invalid_type";
    throw fieldError(
      code,
      `${field}.function`,
      `must be an object, not ${kindOf(target)}`,
      "Send the call as it was received",
    );
  }
  const name = readString(target["name"], `${field}.function.name`);
  const args = target["arguments"];
  return {
    id,
    name,
    arguments: typeof args === "string" ? args : isAbsent(args) ? "{}" : JSON.stringify(args),
  };
}

function readString(value: unknown, field: string): string {
  if (typeof value === "string" && value !== "") return value;
  const code =
    value === undefined ? "missing_field" : value === "" ? "invalid_value" : "invalid_type";
  const problem = value === "" ? "is empty" : `must be a string, not ${kindOf(value)}`;
  throw fieldError(code, field, problem, "Send the call as it was received");
}
