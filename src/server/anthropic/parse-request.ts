/** An Anthropic messages body as plain, checked data. Pure: no clock, no log, no engine. */

import type { ChatMessage, ToolDefinition } from "../../chat/types.ts";
import type { Sampling } from "../../engine/types.ts";
import {
  fieldError,
  isAbsent,
  isObject,
  kindOf,
  readBoolean,
  readNumber,
  type JsonObject,
} from "../openai/fields.ts";
import type { Warn } from "../openai/warnings.ts";
import { checkParameters } from "./parameters.ts";
import { parseConversation } from "./parse-messages.ts";
import { type AnthropicToolChoice, parseToolChoice, parseTools } from "./parse-tools.ts";

export interface MessagesPrompt {
  model: string | null;
  messages: ChatMessage[];
  /** Null: not given. An empty list is given. */
  tools: ToolDefinition[] | null;
  toolChoice: AnthropicToolChoice;
}

export interface MessagesRequest extends MessagesPrompt {
  sampling: Sampling;
  stop: string[];
  maxTokens?: number | undefined;
  stream: boolean;
}

interface RequestLimits {
  /** What the served model samples with unless told otherwise. */
  sampling: Sampling;
  contextSize: number;
}

const maxStops = 16;

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function parseMessagesRequest(
  value: unknown,
  { sampling, contextSize }: RequestLimits,
  warn: Warn,
): MessagesRequest {
  const body = readBody(value, warn);
  const topK = readNumber(
    body,
    "top_k",
    { min: 0, max: 2 ** 31 - 1, integer: true },
    sampling.topK,
  );
  const range = { min: 1, max: Number.MAX_SAFE_INTEGER, integer: true };
  const maxTokens = readNumber(body, "max_tokens", range, undefined);
  checkThinking(body["thinking"], warn);
  return {
    ...readPrompt(body, warn),
    sampling: {
      ...sampling,
      temperature: readNumber(body, "temperature", { min: 0, max: 2 }, sampling.temperature),
      topP: readNumber(body, "top_p", { min: 0, max: 1 }, sampling.topP),
      topK,
    },
    stop: readStop(body["stop_sequences"]),
    // More than the context holds is no error: agents send one fixed number to every model.
    maxTokens: maxTokens === undefined ? undefined : Math.min(maxTokens, contextSize),
    stream: readBoolean(body, "stream", false),
  };
}

/** The body of `count_tokens`. @throws as `parseMessagesRequest` */
export function parseCountRequest(value: unknown, warn: Warn): MessagesPrompt {
  return readPrompt(readBody(value, warn), warn);
}

function readBody(body: unknown, warn: Warn): JsonObject {
  if (!isObject(body)) {
    const remedy = 'Send {"messages": […]}';
    throw fieldError("invalid_type", "body", `must be a JSON object, not ${kindOf(body)}`, remedy);
  }
  checkParameters(body, warn);
  return body;
}

function readPrompt(body: JsonObject, warn: Warn): MessagesPrompt {
  return {
    model: readModel(body["model"]),
    messages: parseConversation(body, warn),
    tools: parseTools(body["tools"], warn),
    toolChoice: parseToolChoice(body["tool_choice"]),
  };
}

function readModel(model: unknown): string | null {
  if (isAbsent(model)) return null;
  if (typeof model === "string") return model;
  const remedy = "Send a model's name or leave it out";
  throw fieldError("invalid_type", "model", `must be a string, not ${kindOf(model)}`, remedy);
}

function readStop(value: unknown): string[] {
  if (isAbsent(value)) return [];
  const remedy = `Send up to ${maxStops} strings`;
  const field = "stop_sequences";
  if (!Array.isArray(value))
    throw fieldError("invalid_type", field, `must be an array, not ${kindOf(value)}`, remedy);
  if (value.length > maxStops)
    throw fieldError("invalid_value", field, `has ${value.length} entries`, remedy);
  return value.map((stop: unknown, index) => {
    if (typeof stop !== "string") {
      const problem = `must be a string, not ${kindOf(stop)}`;
      throw fieldError("invalid_type", `${field}[${index}]`, problem, remedy);
    }
    if (stop === "") throw fieldError("invalid_value", `${field}[${index}]`, "is empty", remedy);
    return stop;
  });
}

function checkThinking(value: unknown, warn: Warn): void {
  if (isAbsent(value)) return;
  if (!isObject(value)) {
    const remedy = 'Send {"type": "enabled"} or {"type": "disabled"}';
    const problem = `must be an object, not ${kindOf(value)}`;
    throw fieldError("invalid_type", "thinking", problem, remedy);
  }
  warn("thinking", "has no effect: the model's template decides");
}
