/** An Anthropic messages body as plain, checked data. Pure: no clock, no log, no engine. */

import type { TemplateVariables, ToolDefinition } from "../../chat/types.ts";
import type { Sampling } from "../../engine/types.ts";
import type { DocumentFormat } from "../../guidance/types.ts";
import {
  expectBody,
  fieldError,
  isAbsent,
  isObject,
  kindOf,
  readBoolean,
  readNumber,
  type JsonObject,
} from "../body/fields.ts";
import { readSampling, readStops, type SamplingLimits } from "../body/sampling.ts";
import { readResponseFormat } from "../body/guidance.ts";
import { checkParameters } from "../body/parameter.ts";
import type { Warn } from "../body/warnings.ts";
import { messageParameters } from "./fields.ts";
import { parseConversation, type ParsedConversation } from "./messages.ts";
import { type AnthropicToolChoice, parseToolChoice, parseTools } from "./tools.ts";

export interface MessagesPrompt extends ParsedConversation {
  model: string | null;
  /** Null: not given. An empty list is given. */
  tools: ToolDefinition[] | null;
  toolChoice: AnthropicToolChoice;
  templateVariables: TemplateVariables;
}

export interface MessagesRequest extends MessagesPrompt {
  sampling: Sampling;
  /** What form the answer's text shall have. */
  document: DocumentFormat | undefined;
  stop: string[];
  maxTokens?: number | undefined;
  stream: boolean;
}

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function parseMessagesRequest(
  value: unknown,
  limits: SamplingLimits,
  warn: Warn,
): MessagesRequest {
  const body = readBody(value, warn);
  const { temperature, top_p, top_k } = body;
  const range = { min: 1, max: Number.MAX_SAFE_INTEGER, integer: true };
  const maxTokens = readNumber(body, "max_tokens", range, undefined);
  const prompt = readPrompt(body, warn);
  const document = readDocument(body);
  if (prompt.prefill !== "" && document !== undefined) {
    const problem = "asks for a whole document, and the last message begins the answer already";
    const remedy = "Let the last message be the user's";
    throw fieldError("invalid_value", "output_config.format", problem, remedy);
  }
  return {
    ...prompt,
    sampling: readSampling({ temperature, top_p, top_k }, limits),
    document,
    stop: isAbsent(body["stop_sequences"])
      ? []
      : readStops(body["stop_sequences"], "stop_sequences"),
    // More than the context holds is no error: agents send one fixed number to every model.
    maxTokens: maxTokens === undefined ? undefined : Math.min(maxTokens, limits.contextSize),
    stream: readBoolean(body, "stream", false),
  };
}

/** The body of `count_tokens`. @throws as `parseMessagesRequest` */
export function parseCountRequest(value: unknown, warn: Warn): MessagesPrompt {
  return readPrompt(readBody(value, warn), warn);
}

function readBody(body: unknown, warn: Warn): JsonObject {
  expectBody(body, 'Send {"messages": […]}');
  checkParameters(messageParameters, body, warn);
  return body;
}

function readPrompt(body: JsonObject, warn: Warn): MessagesPrompt {
  return {
    model: readModel(body["model"]),
    ...parseConversation(body, warn),
    tools: parseTools(body["tools"], warn),
    toolChoice: parseToolChoice(body["tool_choice"]),
    templateVariables: readThinking(body["thinking"]),
  };
}

function readModel(model: unknown): string | null {
  if (isAbsent(model)) return null;
  if (typeof model === "string") return model;
  const remedy = "Send a model's name or leave it out";
  throw fieldError("invalid_type", "model", `must be a string, not ${kindOf(model)}`, remedy);
}

/** Templates of models that think on request have a variable for it. */
function readThinking(value: unknown): TemplateVariables {
  if (isAbsent(value)) return {};
  const remedy = 'Send {"type": "enabled"}, "adaptive" or "disabled"';
  if (!isObject(value)) {
    const problem = `must be an object, not ${kindOf(value)}`;
    throw fieldError("invalid_type", "thinking", problem, remedy);
  }
  const { type } = value;
  if (typeof type !== "string") {
    const code = type === undefined ? "missing_field" : "invalid_type";
    const problem = `must be a string, not ${kindOf(type)}`;
    throw fieldError(code, "thinking.type", problem, remedy);
  }
  return { enable_thinking: type !== "disabled" };
}

function readDocument(body: JsonObject): DocumentFormat | undefined {
  const config = body["output_config"];
  if (isAbsent(config)) return undefined;
  if (!isObject(config)) {
    const problem = `must be an object, not ${kindOf(config)}`;
    throw fieldError("invalid_type", "output_config", problem, 'Send {"format": …}');
  }
  if (isAbsent(config["format"])) return undefined;
  const format = readResponseFormat(config["format"], "output_config.format");
  // What Anthropic's API is asked for it keeps to.
  return format?.kind === "json_schema"
    ? { ...format, strict: true, alwaysStrict: true }
    : (format ?? undefined);
}
