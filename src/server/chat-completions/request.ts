/** A chat-completions body as plain, checked data. Pure: no clock, no log, no engine. */

import { maxChoices, maxTopLogprobs, readModel, readStreamOptions } from "../body/common.ts";
import { readTemplateVariables } from "../body/template-variables.ts";
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
} from "../body/fields.ts";
import { chatCompletionParameters } from "./fields.ts";
import { readMaxTokens, readSampling, readStop, type SamplingLimits } from "../body/sampling.ts";
import { checkParameters } from "../body/parameter.ts";
import { parseGuidance } from "../body/guidance.ts";
import { parseMetadata } from "../body/metadata.ts";
import { parseToolChoice, type ToolChoice } from "../body/tool-choice.ts";
import { parseTools } from "../body/tools.ts";
import { type Conversation, lastIsUsers, readConversation } from "../body/conversation.ts";
import type { Warn } from "../body/warnings.ts";

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
