/** Messages as Ollama's clients send them: arguments are objects, and calls and results may have no ids. */

import type { ChatMessage } from "../../chat/types.ts";
import { asWritten, exactJson, isJsonObject } from "../../json.ts";
import { optional, required, type Type, fieldError } from "../body/field.ts";
import { unseen } from "../body/content-parts.ts";
import { asConversation } from "../body/prompt.ts";
import { list, mapped, object, record, tagged, text } from "../body/values.ts";

/** Base64 of pictures. */
export const imagesField = optional({
  schema: { type: "array", maxItems: 0 },
  remedy: "Send text only",
  read(value: unknown, path: string): void {
    if (Array.isArray(value) && value.length === 0) return;
    const problem = "has images, and the model reads text only";
    throw fieldError("image_not_supported", path, problem, this.remedy);
  },
} satisfies Type<void>);

const image = unseen(text({ remedy: "Send an image as a string" }), () => "an image");
const resultImages = optional(list(image, { remedy: "Send text only" }), "", []);

const showMessage = 'Send {"role": "user", "content": "…"}';
const someText = optional(text({ remedy: "Send text as a string" }), "", "");
const maybeText = optional(text({ remedy: "Send a string or leave it out" }));
const asReceived = "Send the call as it was received";

const call = object(
  {
    id: maybeText,
    function: required(
      object(
        {
          name: required(text({ min: 1, remedy: asReceived })),
          arguments: optional(record(asReceived), "", {}),
        },
        asReceived,
        "passed over",
      ),
    ),
  },
  asReceived,
  "passed over",
);

const plain = (role: "system" | "user") =>
  mapped(
    object({ content: someText, images: imagesField }, showMessage, "passed over"),
    ({ content }): ChatMessage => ({ role, content }),
  );

const assistant = mapped(
  object(
    {
      content: someText,
      thinking: someText,
      images: imagesField,
      tool_calls: optional(list(call, { remedy: "Send an array of calls" }), "", []),
    },
    showMessage,
    "passed over",
  ),
  ({ content, thinking, tool_calls }, path): ChatMessage => {
    const toolCalls = tool_calls.map(({ id, function: { name, arguments: given } }, index) => ({
      id: id ?? `call_${/\d+/.exec(path)}_${index}`,
      name,
      arguments: exactJson(asWritten(given)),
    }));
    return {
      role: "assistant",
      content,
      ...(thinking === "" ? {} : { reasoning: thinking }),
      ...(toolCalls.length === 0 ? {} : { toolCalls }),
    };
  },
);

const toolResult = mapped(
  object(
    {
      content: someText,
      images: resultImages,
      tool_call_id: someText,
      tool_name: maybeText,
      name: someText,
    },
    showMessage,
    "passed over",
  ),
  ({ content, images, tool_call_id: toolCallId, tool_name, name }): ChatMessage => ({
    role: "tool",
    content: [content, ...images].filter((part) => part !== "").join("\n"),
    toolCallId,
    name: tool_name ?? name,
  }),
);

const exactMessage = tagged(
  { system: plain("system"), user: plain("user"), assistant, tool: toolResult },
  {
    tag: "role",
    remedy: showMessage,
    others: {
      code: "invalid_value",
      problem: "is not a known role",
      remedy: "Send system, user, assistant or tool",
    },
  },
);

/** Ollama reads roles in any case. */
const message: typeof exactMessage = {
  ...exactMessage,
  read(value, path, reading) {
    const role = isJsonObject(value) ? value["role"] : undefined;
    if (typeof role !== "string") return exactMessage.read(value, path, reading);
    return exactMessage.read({ ...(value as object), role: role.toLowerCase() }, path, reading);
  },
};

/** Empty: the request only asks for the model to be loaded. */
export const messagesField = optional(
  mapped(list(message, { remedy: "Send an array of messages" }), asConversation),
  "text only; an image in a tool's result becomes a line that says so; none: the model is there already, and the answer is empty",
  [],
);
