/** `input` of a response as items: checked, complete, each with an id. */

import {
  fieldError,
  optional,
  required,
  type FieldTable,
  type Honoured,
  type Type,
  type ValuesOf,
} from "../../body/field.ts";
import { imagePart, notText, textPart } from "../../body/content-parts.ts";
import { callArguments } from "../../body/prompt.ts";
import {
  boolean,
  either,
  list,
  mapped,
  notNull,
  object,
  oneOf,
  record,
  tagged,
  text,
} from "../../body/values.ts";
import { newId } from "../../answer/ids.ts";
import { outputOf } from "../calls/client-calls.ts";
import { additionalToolsFields, updateFields, updateOf } from "./settings.ts";
import type { Item } from "../types.ts";
import type { JsonObject } from "../../../json.ts";

/** Of ids, which are remembered. */
const maxIdLength = 256;
/** Each is a row of the store. */
const maxItems = 10_000;

/** Asks for a compaction item in place of an answer. It says nothing, and is not kept. */
export const compactionTrigger = "compaction_trigger";

const asReceived = "Send the item as it was received";
const callAsReceived = "Send the call as it was received";

/** A text that must be there. */
function some(remedy: string, max = Infinity) {
  return required(notNull(text({ min: 1, max, remedy })));
}

/** A text, or another value that reads as `otherwise`. */
function textOr<Other>(otherwise: Other): Honoured<string | Other> {
  const read = (value: unknown) => (typeof value === "string" ? value : otherwise);
  return {
    ...optional<string | Other>({ schema: { type: "string" }, remedy: asReceived, read }),
    read,
  };
}

type Prefix = Parameters<typeof newId>[0];

const idField = optional(
  text({ min: 1, max: maxIdLength, remedy: "Leave it out or send it as received" }),
);

/** The client's id is kept: it is how its items are found again. */
function identity(type: string, prefix: Prefix, given: unknown): { id: string; type: string } {
  return { id: (given as string | undefined) ?? newId(prefix), type };
}

/** @param complete makes the item of its fields; by default they are the item */
function item<Table extends FieldTable>(
  type: string,
  prefix: Prefix,
  table: Table,
  complete: (given: ValuesOf<Table>, path: string) => JsonObject = (given) => given,
): Type<Item> {
  const fields = object<FieldTable>({ id: idField, ...table }, asReceived, "passed over");
  return mapped(fields, (read, path) => {
    const { id, ...given } = read as JsonObject;
    return { ...identity(type, prefix, id), ...complete(given as ValuesOf<Table>, path) };
  });
}

const part = tagged(
  {
    input_text: textPart("text"),
    output_text: textPart("text"),
    text: textPart("text"),
    refusal: textPart("refusal"),
    input_image: imagePart,
    image_url: imagePart,
    input_file: notText("input_file"),
    input_audio: notText("input_audio"),
  },
  {
    remedy: 'Send {"type": "input_text", "text": "…"}',
    others: {
      code: "invalid_value",
      problem: "is not a known kind of part",
      remedy: 'Send "input_text"',
    },
  },
);

/** Texts of the parts. */
const content = notNull(
  either(
    {
      string: mapped(text(), (one) => [one]),
      array: list(part, { remedy: "Send text as a string" }),
    },
    "a string or an array of parts",
    "Send the message's text as a string",
  ),
);

/** In the spelling of the role's direction: what an assistant said is output. */
function wirePart(role: string, one: string): JsonObject {
  return role === "assistant"
    ? { type: "output_text", text: one, annotations: [] }
    : { type: "input_text", text: one };
}

const message = item(
  "message",
  "msg",
  {
    role: required(notNull(oneOf(["user", "assistant", "system", "developer"], "role"))),
    content: required(content),
    phase: textOr(null),
  },
  ({ role, content: texts, phase }) => ({
    status: "completed",
    role,
    content: texts.map((one) => wirePart(role, one)),
    ...(phase === "commentary" || phase === "final_answer" ? { phase } : {}),
  }),
);

const callFields = {
  call_id: some(callAsReceived, maxIdLength),
  name: some(callAsReceived),
  namespace: textOr(""),
  status: textOr(null),
};

function completeCall({ namespace, status, ...given }: JsonObject): JsonObject {
  return {
    // A call that a client replays was answered or never will be.
    status: status === "incomplete" ? status : "completed",
    ...given,
    ...(namespace === "" ? {} : { namespace }),
  };
}

const outputFields = {
  call_id: some("Send the id of the call that this answers", maxIdLength),
  output: required<unknown>({
    schema: { anyOf: [{ type: "string" }, { type: "array", items: part.schema }] },
    remedy: "Send the tool's result as a string",
    read: outputOf,
  }),
};
const completed = (given: JsonObject): JsonObject => ({ status: "completed", ...given });

const objects = optional(list(record(asReceived), { remedy: asReceived }), "", []);

const serverCallFields = {
  server_label: some(asReceived),
  name: some(asReceived),
  arguments: textOr("{}"),
};

/** What the server said of its tools goes back as it is. */
const toolList = mapped(record(asReceived), (given, path, reading): Item => {
  const id = idField.read(given["id"], `${path}.id`, reading);
  return { ...given, ...identity("mcp_list_tools", "mcpl", id) };
});

const items = {
  message,
  function_call: item(
    "function_call",
    "fc",
    { ...callFields, arguments: optional(callArguments, "", "{}") },
    completeCall,
  ),
  function_call_output: item("function_call_output", "fco", outputFields, completed),
  custom_tool_call: item(
    "custom_tool_call",
    "ctc",
    { ...callFields, input: required(text({ remedy: callAsReceived })) },
    completeCall,
  ),
  custom_tool_call_output: item("custom_tool_call_output", "ctco", outputFields, completed),
  reasoning: item(
    "reasoning",
    "rs",
    { summary: objects, content: objects, encrypted_content: textOr(null) },
    ({ encrypted_content: encrypted, ...given }) => ({
      status: "completed",
      ...given,
      ...(encrypted === null ? {} : { encrypted_content: encrypted }),
    }),
  ),
  mcp_call: item(
    "mcp_call",
    "mcp",
    {
      ...serverCallFields,
      output: textOr(null),
      error: textOr(null),
      approval_request_id: textOr(null),
    },
    (given) => ({ status: given.error === null ? "completed" : "failed", ...given }),
  ),
  mcp_list_tools: toolList,
  mcp_approval_request: item("mcp_approval_request", "mcpr", serverCallFields),
  mcp_approval_response: item("mcp_approval_response", "mcpr", {
    approve: required(boolean),
    approval_request_id: some("Send the id of the mcp_approval_request"),
  }),
  additional_tools: item("additional_tools", "at", {
    role: textOr("developer"),
    ...additionalToolsFields,
  }),
  configuration_update: item("configuration_update", "cu", updateFields, updateOf),
  compaction: item("compaction", "cmp", {
    encrypted_content: some("Send the item as the server gave it"),
  }),
  compaction_trigger: mapped(record(asReceived), (): Item => ({ id: "", type: compactionTrigger })),
  item_reference: mapped(
    object({ id: some("Send the id of a stored item") }, asReceived, "passed over"),
    ({ id }): Item => ({ id, type: "item_reference" }),
  ),
};

/** Items of types that mean nothing here read as null. */
const inputItem = tagged(items, {
  remedy: 'Send {"role": …, "content": …}',
  others: {
    warning: "means nothing to this server: the item is skipped",
    remedy: 'Send "message", "function_call" or "function_call_output"',
  },
  untagged(value, path) {
    if (typeof value["role"] === "string") return "message";
    throw untyped(value, `${path}.type`);
  },
});

function untyped({ call_id: callId, output }: JsonObject, field: string): Error {
  if (callId === undefined || output === undefined)
    return fieldError("missing_field", field, "is missing", inputItem.remedy);
  // Without its type a model would not see the result, and would call the tool again and again.
  const id = typeof callId === "string" ? callId.slice(0, 100) : "…";
  const corrected = { type: "function_call_output", call_id: id, output: "…" };
  const problem = "is missing from what looks like a tool's result";
  return fieldError("missing_field", field, problem, `Send ${JSON.stringify(corrected)}`);
}

function known(given: (Item | null)[]): Item[] {
  return given.filter((one) => one !== null);
}

const sendText = "Send the user's message as a string";

/** A string is one user message. */
export const inputItems: Type<Item[]> = either(
  {
    string: mapped(text(), (said): Item[] => [
      {
        id: newId("msg"),
        type: "message",
        status: "completed",
        role: "user",
        content: [wirePart("user", said)],
      },
    ]),
    array: mapped(list(inputItem, { max: maxItems, remedy: sendText }), (given, path) => {
      const trigger = given.findIndex((one) => one?.type === compactionTrigger);
      if (trigger < 0 || trigger === given.length - 1) return known(given);
      const remedy = "Send it behind the items that are to be compacted";
      throw fieldError("invalid_value", `${path}[${trigger}]`, "must be the last item", remedy);
    }),
  },
  "a string or an array of items",
  sendText,
);

/** Items of a conversation, as many as OpenAI takes at once. */
export function newItems(min: 0 | 1): Type<Item[]> {
  const max = 20;
  const remedy = `Send an array of ${min} to ${max} items`;
  return mapped(list(inputItem, { min, max, remedy }), (given, path) => {
    const trigger = given.findIndex((one) => one?.type === compactionTrigger);
    if (trigger >= 0) {
      const problem = "asks for a compaction, which only a response can give";
      const remedy = "Send it as the last item of a response's input";
      throw fieldError("unsupported_value", `${path}[${trigger}].type`, problem, remedy);
    }
    const reference = given.findIndex((one) => one?.type === "item_reference");
    if (reference < 0) return known(given);
    const field = `${path}[${reference}].type`;
    throw fieldError("unsupported_value", field, "is a reference", "Send the item itself");
  });
}
