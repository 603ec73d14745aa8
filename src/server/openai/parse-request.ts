/** A chat-completions body as plain, checked data. Pure: no clock, no log, no engine. */

import type { TemplateVariables, ToolDefinition } from "../../chat/types.ts";
import type { Sampling } from "../../engine/types.ts";
import type { Guidance } from "../../guidance/types.ts";
import {
  expectBody,
  fieldError,
  isAbsent,
  isObject,
  kindOf,
  readBoolean,
  readNumber,
  type JsonObject,
} from "./fields.ts";
import { chatCompletionParameters } from "./parameters/chat-completions.ts";
import { readMaxTokens, readSampling, readStop, type SamplingLimits } from "./parse-sampling.ts";
import { checkParameters } from "./parameters/parameter.ts";
import { parseGuidance } from "./parse-guidance.ts";
import { parseMetadata } from "./responses/parse-metadata.ts";
import { parseToolChoice, type ToolChoice } from "./parse-tool-choice.ts";
import { parseTools } from "./parse-tools.ts";
import { type Conversation, lastIsUsers, readConversation } from "./read-conversation.ts";
import type { Warn } from "./warnings.ts";

export interface ChatCompletionRequest extends Conversation {
  model: string | null;
  /** Null: not given. An empty list is given. */
  tools: ToolDefinition[] | null;
  toolChoice: ToolChoice;
  guidance: Guidance;
  templateVariables: TemplateVariables;
  sampling: Sampling;
  stop: string[];
  maxTokens?: number | undefined;
  /** How many answers. */
  n: number;
  topLogprobs?: number | undefined;
  stream: boolean;
  tellsTools: boolean;
  includeUsage: boolean;
  /** To be kept, under these labels. */
  stored: { metadata: Record<string, string>; messages: readonly JsonObject[] } | null;
}

/** As OpenAI has it. */
export const maxChoices = 128;
export const maxTopLogprobs = 20;

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function parseChatCompletionRequest(
  body: unknown,
  limits: SamplingLimits,
  warn: Warn,
): ChatCompletionRequest {
  expectBody(body, 'Send {"messages": […]}');
  checkParameters(chatCompletionParameters, body, warn);
  const stream = readBoolean(body, "stream", false);
  const toolChoice = parseToolChoice(body["tool_choice"]);
  const guidance = parseGuidance(body, toolChoice);
  const conversation = readConversation(body, warn);
  if (conversation.prefill !== "" && guidance.document !== undefined) {
    const problem =
      "ends with the beginning of an answer, and the request asks for a whole document";
    throw fieldError("invalid_value", "messages", problem, lastIsUsers);
  }
  return {
    model: readModel(body),
    ...conversation,
    tools: parseTools(body["tools"], warn),
    toolChoice,
    guidance,
    templateVariables: readTemplateVariables(body),
    sampling: readSampling(body, limits),
    stop: readStop(body["stop"]),
    maxTokens: readMaxTokens(body, limits),
    n: readNumber(body, "n", { min: 1, max: maxChoices, integer: true }, 1),
    topLogprobs: readLogprobs(body),
    stream,
    tellsTools: readExtension(body["fermata"], stream, warn),
    includeUsage: readStreamOptions(body["stream_options"], stream, warn),
    stored: readBoolean(body, "store", false)
      ? {
          metadata: parseMetadata(body["metadata"]),
          messages: body["messages"] as readonly JsonObject[],
        }
      : null,
  };
}

export function readModel(body: JsonObject): string | null {
  const { model } = body;
  if (isAbsent(model)) return null;
  if (typeof model !== "string") {
    throw fieldError(
      "invalid_type",
      "model",
      `must be a string, not ${kindOf(model)}`,
      "Send a model's name or leave it out",
    );
  }
  return model;
}

export function readStreamOptions(value: unknown, stream: boolean, warn: Warn): boolean {
  if (isAbsent(value)) return false;
  if (!isObject(value)) {
    throw fieldError(
      "invalid_type",
      "stream_options",
      `must be an object, not ${kindOf(value)}`,
      'Send {"include_usage": true}',
    );
  }
  if (!stream) warn("stream_options", "has no effect without stream");
  for (const [key, option] of Object.entries(value)) {
    if (key === "include_usage") {
      if (!isAbsent(option) && typeof option !== "boolean") {
        const problem = `must be a boolean, not ${kindOf(option)}`;
        throw fieldError(
          "invalid_type",
          "stream_options.include_usage",
          problem,
          "Send true or false",
        );
      }
    } else if (option !== false) {
      warn(`stream_options.${key}`, "has no effect");
    }
  }
  return value["include_usage"] === true;
}

/** What OpenAI's wire has no words for. @returns whether the stream tells what tools do */
function readExtension(value: unknown, stream: boolean, warn: Warn): boolean {
  if (isAbsent(value)) return false;
  const remedy = 'Send {"tool_status": true}';
  if (!isObject(value))
    throw fieldError("invalid_type", "fermata", `must be an object, not ${kindOf(value)}`, remedy);
  const unknown = Object.keys(value).find((key) => key !== "tool_status");
  if (unknown !== undefined)
    throw fieldError("invalid_value", `fermata.${unknown.slice(0, 64)}`, "is not known", remedy);
  const { tool_status: wanted } = value;
  if (!isAbsent(wanted) && typeof wanted !== "boolean") {
    const problem = `must be a boolean, not ${kindOf(wanted)}`;
    throw fieldError("invalid_type", "fermata.tool_status", problem, "Send true or false");
  }
  if (wanted === true && !stream) warn("fermata.tool_status", "has no effect without stream");
  return wanted === true && stream;
}

/** Undefined: none are asked for. */
function readLogprobs(body: JsonObject): number | undefined {
  const wanted = readBoolean(body, "logprobs", false);
  const top = readNumber(
    body,
    "top_logprobs",
    { min: 0, max: maxTopLogprobs, integer: true },
    undefined,
  );
  if (!wanted && top !== undefined && top > 0)
    throw fieldError(
      "invalid_value",
      "top_logprobs",
      "needs logprobs",
      'Send "logprobs": true too',
    );
  return wanted ? (top ?? 0) : undefined;
}

/** Of `chat_template_kwargs`, in characters of JSON: each is made a value of the template's at every rendering. */
const maxVariables = 64 * 1024;

const reasoningEfforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** What goes to the template: `reasoning_effort` under its own name, and whatever is in `chat_template_kwargs`. */
export function readTemplateVariables(
  body: JsonObject,
  effort = body["reasoning_effort"],
  effortField = "reasoning_effort",
): TemplateVariables {
  const { chat_template_kwargs: variables } = body;
  if (!isAbsent(variables) && !isObject(variables)) {
    const problem = `must be an object, not ${kindOf(variables)}`;
    const remedy = 'Send {"<name>": <value>}';
    throw fieldError("invalid_type", "chat_template_kwargs", problem, remedy);
  }
  const enabled = variables?.["enable_thinking"];
  if (!isAbsent(enabled) && typeof enabled !== "boolean") {
    const problem = `must be a boolean, not ${kindOf(enabled)}`;
    const field = "chat_template_kwargs.enable_thinking";
    throw fieldError("invalid_type", field, problem, "Send true or false");
  }
  const size = isAbsent(variables) ? 0 : JSON.stringify(variables).length;
  if (size > maxVariables) {
    const remedy = `Send at most ${maxVariables}`;
    const problem = `has ${size} characters as JSON`;
    throw fieldError("invalid_value", "chat_template_kwargs", problem, remedy);
  }
  if (isAbsent(effort)) return variables ?? {};
  if (typeof effort !== "string" || !reasoningEfforts.includes(effort)) {
    const code = typeof effort === "string" ? "invalid_value" : "invalid_type";
    const remedy = `Send one of ${reasoningEfforts.join(", ")}`;
    throw fieldError(code, effortField, "is not a known effort", remedy);
  }
  return { reasoning_effort: effort, ...variables };
}
