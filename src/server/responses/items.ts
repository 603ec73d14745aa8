/** `input` of a response as items: checked, complete, each with an id. */

import { fieldError, isAbsent, isObject, kindOf, type JsonObject } from "../body/fields.ts";
import type { Schema, Type } from "../body/field.ts";
import { toolName } from "../body/tools.ts";
import type { Warn } from "../body/warnings.ts";
import { newId } from "../answer/ids.ts";
import { parseOutput } from "./client-calls.ts";
import type { Item } from "./types.ts";

type ItemParser = (entry: JsonObject, field: string) => Item;

const parsers: Record<string, ItemParser> = {
  message: parseMessage,
  function_call: parseFunctionCall,
  function_call_output: (entry, field) => parseCallOutput(entry, field, "fco"),
  custom_tool_call: parseCustomToolCall,
  custom_tool_call_output: (entry, field) => parseCallOutput(entry, field, "ctco"),
  reasoning: parseReasoning,
  mcp_call: parseMcpCall,
  mcp_list_tools: (entry, field) => ({ ...entry, ...identity(entry, "mcp_list_tools", field) }),
  mcp_approval_request: parseApprovalRequest,
  mcp_approval_response: parseApprovalResponse,
  compaction: parseCompaction,
  item_reference: (entry, field) => ({
    id: requireText(entry, "id", field, "Send the id of a stored item"),
    type: "item_reference",
  }),
};

const maxIdLength = 256;
/** Each is a row of the store. */
const maxItems = 10_000;

const roles = new Set(["user", "assistant", "system", "developer"]);
const textParts = new Set(["input_text", "output_text", "text", "refusal"]);

const string = { type: "string" };
const toolNameSchema = toolName(64).schema;
const texts = {
  anyOf: [
    string,
    {
      type: "array",
      items: {
        type: "object",
        properties: { type: { type: "string", enum: ["input_text", "output_text"] }, text: string },
        required: ["type", "text"],
      },
    },
  ],
};

function itemSchema(type: string, properties: object, required = Object.keys(properties)): Schema {
  const tag = { type: "string", enum: [type] };
  return {
    type: "object",
    properties: { type: tag, ...properties },
    required: ["type", ...required],
  };
}

/** Those that clients write; they send back what the server gave them as it is. */
const itemSchemas: Schema = {
  anyOf: [
    {
      ...itemSchema("message", { role: { type: "string", enum: [...roles] }, content: texts }),
      required: ["role", "content"],
    },
    itemSchema("function_call", { call_id: string, name: toolNameSchema, arguments: string }),
    itemSchema("function_call_output", { call_id: string, output: texts }),
    itemSchema("custom_tool_call", { call_id: string, name: toolNameSchema, input: string }),
    itemSchema("custom_tool_call_output", { call_id: string, output: texts }),
    itemSchema("reasoning", { summary: { type: "array", items: { type: "object" } } }),
  ],
};

/** A string is one user message. */
export const inputItems: Type<Item[]> = {
  schema: { anyOf: [string, { type: "array", items: itemSchemas, maxItems }] },
  remedy: "Send the user's message as a string",
  read: (value, path, { warn }) => parseItems(value, path, warn),
};

/** Items of a conversation, as many as OpenAI takes at once. */
export function newItems(min: 0 | 1): Type<Item[]> {
  const max = 20;
  return {
    schema: { type: "array", items: itemSchemas, minItems: min, maxItems: max },
    remedy: "Send an array of items",
    read(value, path, { warn }) {
      if (!Array.isArray(value)) {
        const problem = `must be an array, not ${kindOf(value)}`;
        throw fieldError("invalid_type", path, problem, this.remedy);
      }
      if (value.length < min) throw fieldError("invalid_value", path, "has no item", this.remedy);
      if (value.length > max) {
        const problem = `has ${value.length} items`;
        throw fieldError("invalid_value", path, problem, `Send at most ${max} at once`);
      }
      const items = parseItems(value, path, warn);
      const reference = items.findIndex(({ type }) => type === "item_reference");
      if (reference < 0) return items;
      const field = `${path}[${reference}].type`;
      throw fieldError("unsupported_value", field, "is a reference", "Send the item itself");
    },
  };
}

/** Items of types that mean nothing here are skipped with a warning. */
function parseItems(value: unknown, field: string, warn: Warn): Item[] {
  if (typeof value === "string") {
    const content = [{ type: "input_text", text: value }];
    return [{ id: newId("msg"), type: "message", status: "completed", role: "user", content }];
  }
  if (!Array.isArray(value)) {
    const problem = `must be a string or an array of items, not ${kindOf(value)}`;
    throw fieldError("invalid_type", field, problem, "Send the user's message as a string");
  }
  if (value.length > maxItems) {
    const remedy = `Send at most ${maxItems}`;
    throw fieldError("invalid_value", field, `has ${value.length} items`, remedy);
  }
  const items: Item[] = [];
  value.forEach((entry: unknown, index) => {
    const item = parseItem(entry, `${field}[${index}]`, warn);
    if (item !== null) items.push(item);
  });
  return items;
}

function parseItem(entry: unknown, field: string, warn: Warn): Item | null {
  if (!isObject(entry)) {
    const problem = `must be an object, not ${kindOf(entry)}`;
    throw fieldError("invalid_type", field, problem, 'Send {"role": …, "content": …}');
  }
  const type = typeOf(entry, field);
  const parser = Object.hasOwn(parsers, type) ? parsers[type] : undefined;
  if (parser !== undefined) return parser(entry, field);
  warn(`input[].type=${type.slice(0, 40)}`, "means nothing to this server: the item is skipped");
  return null;
}

function typeOf(entry: JsonObject, field: string): string {
  const { type } = entry;
  if (typeof type === "string") return type;
  if (!isAbsent(type)) {
    const problem = `must be a string, not ${kindOf(type)}`;
    throw fieldError("invalid_type", `${field}.type`, problem, 'Send "message"');
  }
  if (typeof entry["role"] === "string") return "message";
  if ("call_id" in entry && "output" in entry) throw untypedOutput(entry, field);
  throw fieldError(
    "missing_field",
    `${field}.type`,
    "is missing",
    'Send "message", "function_call" or "function_call_output"',
  );
}

/** Without its type a model would not see the result, and would call the tool again and again. */
function untypedOutput(entry: JsonObject, field: string): Error {
  const callId = typeof entry["call_id"] === "string" ? entry["call_id"].slice(0, 100) : "…";
  const corrected = { type: "function_call_output", call_id: callId, output: "…" };
  return fieldError(
    "missing_field",
    `${field}.type`,
    "is missing from what looks like a tool's result",
    `Send ${JSON.stringify(corrected)}`,
  );
}

function parseMessage(entry: JsonObject, field: string): Item {
  const { role } = entry;
  if (typeof role !== "string" || !roles.has(role)) {
    const code = isAbsent(role) ? "missing_field" : "invalid_value";
    const problem = isAbsent(role) ? "is missing" : "is not a known role";
    throw fieldError(code, `${field}.role`, problem, "Send user, assistant, system or developer");
  }
  const content = parseItemContent(entry["content"], role, `${field}.content`);
  const { phase } = entry;
  return {
    ...identity(entry, "msg", field, "message"),
    status: "completed",
    role,
    content,
    ...(phase === "commentary" || phase === "final_answer" ? { phase } : {}),
  };
}

/** Parts in the spelling of the role's direction: what an assistant said is output. */
function parseItemContent(value: unknown, role: string, field: string): JsonObject[] {
  const type = role === "assistant" ? "output_text" : "input_text";
  if (isAbsent(value)) {
    const problem = value === null ? "must not be null" : "is missing";
    throw fieldError("missing_field", field, problem, "Send the message's text as a string");
  }
  if (typeof value === "string") return [textPart(type, value)];
  if (Array.isArray(value))
    return value.map((part, index) => textPart(type, parsePart(part, `${field}[${index}]`)));
  const problem = `must be a string or an array of parts, not ${kindOf(value)}`;
  throw fieldError("invalid_type", field, problem, "Send text as a string");
}

function textPart(type: string, text: string): JsonObject {
  return type === "output_text" ? { type, text, annotations: [] } : { type, text };
}

function parsePart(part: unknown, field: string): string {
  if (!isObject(part)) {
    const problem = `must be an object, not ${kindOf(part)}`;
    throw fieldError("invalid_type", field, problem, 'Send {"type": "input_text", "text": "…"}');
  }
  const { type } = part;
  if (type === "input_image" || type === "image_url") {
    const problem = "is an image, and the model reads text only";
    throw fieldError("image_not_supported", `${field}.type`, problem, "Send text parts only");
  }
  if (type === "input_file" || type === "input_audio") {
    const problem = `is "${type}", and the model reads text only`;
    throw fieldError("unsupported_value", `${field}.type`, problem, "Send text parts only");
  }
  if (typeof type !== "string" || !textParts.has(type)) {
    const code = isAbsent(type) ? "missing_field" : "invalid_value";
    const problem = isAbsent(type) ? "is missing" : "is not a known kind of part";
    throw fieldError(code, `${field}.type`, problem, 'Send "input_text"');
  }
  const key = type === "refusal" ? "refusal" : "text";
  const text = part[key];
  if (typeof text === "string") return text;
  const code = text === undefined ? "missing_field" : "invalid_type";
  const problem = `must be a string, not ${kindOf(text)}`;
  throw fieldError(code, `${field}.${key}`, problem, "Send the part's text as a string");
}

function parseFunctionCall(entry: JsonObject, field: string): Item {
  const { arguments: args } = entry;
  // Valid JSON or not: it is history, and was once a model's output.
  const text = typeof args === "string" ? args : isAbsent(args) ? "{}" : JSON.stringify(args);
  return { ...callOf(entry, field, "fc", "function_call"), arguments: text };
}

function parseCustomToolCall(entry: JsonObject, field: string): Item {
  const { input } = entry;
  if (typeof input !== "string") {
    const code = input === undefined ? "missing_field" : "invalid_type";
    const problem = `must be a string, not ${kindOf(input)}`;
    throw fieldError(code, `${field}.input`, problem, "Send the call as it was received");
  }
  return { ...callOf(entry, field, "ctc", "custom_tool_call"), input };
}

function callOf(entry: JsonObject, field: string, prefix: Prefix, type: string): Item {
  const remedy = "Send the call as it was received";
  const { namespace, status } = entry;
  return {
    ...identity(entry, prefix, field, type),
    // A call that a client replays was answered or never will be.
    status: status === "incomplete" ? status : "completed",
    call_id: requireId(entry, "call_id", field, remedy),
    name: requireText(entry, "name", field, remedy),
    ...(typeof namespace === "string" && namespace !== "" ? { namespace } : {}),
  };
}

function parseCallOutput(entry: JsonObject, field: string, prefix: "fco" | "ctco"): Item {
  return {
    ...identity(entry, prefix, field, String(entry["type"])),
    status: "completed",
    call_id: requireId(entry, "call_id", field, "Send the id of the call that this answers"),
    output: parseOutput(entry["output"], `${field}.output`),
  };
}

function parseReasoning(entry: JsonObject, field: string): Item {
  const { summary, content, encrypted_content: encrypted } = entry;
  for (const [key, value] of Object.entries({ summary, content })) {
    if (isAbsent(value)) continue;
    const fault = (place: string, wanted: string, given: unknown): Error => {
      const problem = `must be ${wanted}, not ${kindOf(given)}`;
      return fieldError("invalid_type", place, problem, "Send the item as received");
    };
    if (!Array.isArray(value)) throw fault(`${field}.${key}`, "an array", value);
    value.forEach((part: unknown, index) => {
      if (!isObject(part)) throw fault(`${field}.${key}[${index}]`, "an object", part);
    });
  }
  return {
    ...identity(entry, "rs", field, "reasoning"),
    status: "completed",
    summary: summary ?? [],
    content: content ?? [],
    ...(typeof encrypted === "string" ? { encrypted_content: encrypted } : {}),
  };
}

function parseMcpCall(entry: JsonObject, field: string): Item {
  const remedy = "Send the item as it was received";
  const { arguments: args, output, error, approval_request_id: approval } = entry;
  return {
    ...identity(entry, "mcp", field, "mcp_call"),
    status: typeof error === "string" ? "failed" : "completed",
    server_label: requireText(entry, "server_label", field, remedy),
    name: requireText(entry, "name", field, remedy),
    arguments: typeof args === "string" ? args : "{}",
    output: typeof output === "string" ? output : null,
    error: typeof error === "string" ? error : null,
    approval_request_id: typeof approval === "string" ? approval : null,
  };
}

function parseApprovalRequest(entry: JsonObject, field: string): Item {
  const remedy = "Send the item as it was received";
  const { arguments: args } = entry;
  return {
    ...identity(entry, "mcpr", field, "mcp_approval_request"),
    server_label: requireText(entry, "server_label", field, remedy),
    name: requireText(entry, "name", field, remedy),
    arguments: typeof args === "string" ? args : "{}",
  };
}

function parseApprovalResponse(entry: JsonObject, field: string): Item {
  const { approve } = entry;
  if (typeof approve !== "boolean") {
    const problem = `must be a boolean, not ${kindOf(approve)}`;
    throw fieldError("invalid_type", `${field}.approve`, problem, "Send true or false");
  }
  const remedy = "Send the id of the mcp_approval_request";
  return {
    ...identity(entry, "mcpr", field, "mcp_approval_response"),
    approval_request_id: requireText(entry, "approval_request_id", field, remedy),
    approve,
  };
}

function parseCompaction(entry: JsonObject, field: string): Item {
  const remedy = "Send the item as POST /v1/responses/compact gave it";
  return {
    ...identity(entry, "cmp", field, "compaction"),
    encrypted_content: requireText(entry, "encrypted_content", field, remedy),
  };
}

type Prefix = Parameters<typeof newId>[0];

/** The client's id is kept: it is how its items are found again. */
function identity(
  entry: JsonObject,
  prefix: Prefix | "mcp_list_tools",
  field: string,
  type: string = prefix,
): { id: string; type: string } {
  const { id } = entry;
  if (isAbsent(id)) return { id: newId(prefix === "mcp_list_tools" ? "mcpl" : prefix), type };
  if (typeof id === "string" && id !== "" && id.length <= maxIdLength) return { id, type };
  const problem =
    typeof id === "string" ? "is empty or too long" : `must be a string, not ${kindOf(id)}`;
  throw fieldError("invalid_value", `${field}.id`, problem, "Leave it out or send it as received");
}

/** Ids are remembered. */
function requireId(entry: JsonObject, key: string, field: string, remedy: string): string {
  const id = requireText(entry, key, field, remedy);
  if (id.length <= maxIdLength) return id;
  throw fieldError("invalid_value", `${field}.${key}`, `has ${id.length} characters`, remedy);
}

function requireText(entry: JsonObject, key: string, field: string, remedy: string): string {
  const value = entry[key];
  if (typeof value === "string" && value !== "") return value;
  const code = isAbsent(value) ? "missing_field" : value === "" ? "invalid_value" : "invalid_type";
  const problem = isAbsent(value)
    ? "is missing"
    : value === ""
      ? "is empty"
      : `must be a string, not ${kindOf(value)}`;
  throw fieldError(code, `${field}.${key}`, problem, remedy);
}
