/** A chat-completions body as plain, checked data. Pure: no clock, no log, no engine. */

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
} from "./fields.ts";
import { chatCompletionParameters } from "./parameters/chat-completions.ts";
import { checkParameters } from "./parameters/parameter.ts";
import { parseMessages } from "./parse-messages.ts";
import { parseToolChoice, parseTools } from "./parse-tools.ts";
import type { Warn } from "./warnings.ts";

export interface ChatCompletionRequest {
  model: string | null;
  messages: ChatMessage[];
  /** Null: not given. An empty list is given. */
  tools: ToolDefinition[] | null;
  toolChoice: "auto" | "none";
  sampling: Sampling;
  stop: string[];
  maxTokens?: number | undefined;
  stream: boolean;
  includeUsage: boolean;
}

export interface RequestLimits {
  /** What the served model samples with unless told otherwise; its seed is used when none is given. */
  sampling: Sampling;
  contextSize: number;
  vocabularySize: number;
}

const maxStops = 16;
const seedRange = 2 ** 32;

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function parseChatCompletionRequest(
  body: unknown,
  limits: RequestLimits,
  warn: Warn,
): ChatCompletionRequest {
  if (!isObject(body)) {
    throw fieldError(
      "invalid_type",
      "body",
      `must be a JSON object, not ${kindOf(body)}`,
      'Send {"messages": […]}',
    );
  }
  checkParameters(chatCompletionParameters, body, warn);
  const stream = readBoolean(body, "stream", false);
  return {
    model: readModel(body),
    messages: parseMessages(body["messages"], warn),
    tools: parseTools(body["tools"], warn),
    toolChoice: parseToolChoice(body["tool_choice"]),
    sampling: readSampling(body, limits),
    stop: readStop(body["stop"]),
    maxTokens: readMaxTokens(body, limits.contextSize),
    stream,
    includeUsage: readStreamOptions(body["stream_options"], stream, warn),
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

export function readSampling(body: JsonObject, limits: RequestLimits): Sampling {
  const defaults = limits.sampling;
  const topK = readNumber(
    body,
    "top_k",
    { min: -1, max: 2 ** 31 - 1, integer: true },
    defaults.topK,
  );
  const seed = readNumber(
    body,
    "seed",
    { min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER, integer: true },
    defaults.seed,
  );
  return {
    ...defaults,
    temperature: readNumber(body, "temperature", { min: 0, max: 2 }, defaults.temperature),
    topP: readNumber(body, "top_p", { min: 0, max: 1 }, defaults.topP),
    // -1 means "all" to some clients, 0 to the sampler.
    topK: Math.max(topK, 0),
    minP: readNumber(body, "min_p", { min: 0, max: 1 }, defaults.minP),
    frequencyPenalty: readNumber(
      body,
      "frequency_penalty",
      { min: -2, max: 2 },
      defaults.frequencyPenalty,
    ),
    presencePenalty: readNumber(
      body,
      "presence_penalty",
      { min: -2, max: 2 },
      defaults.presencePenalty,
    ),
    seed: ((seed % seedRange) + seedRange) % seedRange,
    logitBias: readLogitBias(body["logit_bias"], limits.vocabularySize),
  };
}

function readLogitBias(value: unknown, vocabularySize: number): [number, number][] {
  if (isAbsent(value)) return [];
  if (!isObject(value)) {
    const remedy = 'Send {"<token id>": <bias>}';
    throw fieldError(
      "invalid_type",
      "logit_bias",
      `must be an object, not ${kindOf(value)}`,
      remedy,
    );
  }
  return Object.entries(value).map(([key, bias]) => {
    const field = `logit_bias.${key.slice(0, 40)}`;
    const token = /^\d{1,9}$/.test(key) ? Number(key) : -1;
    if (token < 0 || token >= vocabularySize) {
      throw fieldError(
        "invalid_value",
        field,
        "is not a token of the model",
        `Send token ids from 0 to ${vocabularySize - 1}`,
      );
    }
    if (typeof bias !== "number" || !(bias >= -100 && bias <= 100)) {
      const code = typeof bias === "number" ? "invalid_value" : "invalid_type";
      throw fieldError(code, field, "is not a legal bias", "Send a number from -100 to 100");
    }
    return [token, bias];
  });
}

function readStop(value: unknown): string[] {
  if (isAbsent(value)) return [];
  const list = typeof value === "string" ? [value] : value;
  const remedy = `Send a string or up to ${maxStops} strings`;
  if (!Array.isArray(list))
    throw fieldError(
      "invalid_type",
      "stop",
      `must be a string or an array, not ${kindOf(value)}`,
      remedy,
    );
  if (list.length > maxStops)
    throw fieldError("invalid_value", "stop", `has ${list.length} entries`, remedy);
  return list.map((stop: unknown, index) => {
    const field = typeof value === "string" ? "stop" : `stop[${index}]`;
    if (typeof stop !== "string")
      throw fieldError("invalid_type", field, `must be a string, not ${kindOf(stop)}`, remedy);
    if (stop === "") throw fieldError("invalid_value", field, "is empty", remedy);
    return stop;
  });
}

/** More than the context holds is no error: agents send one fixed number to every model. */
function readMaxTokens(body: JsonObject, contextSize: number): number | undefined {
  const range = { min: 1, max: Number.MAX_SAFE_INTEGER, integer: true };
  const legacy = readNumber(body, "max_tokens", range, undefined);
  const current = readNumber(body, "max_completion_tokens", range, undefined);
  const limit = current ?? legacy;
  return limit === undefined ? undefined : Math.min(limit, contextSize);
}

function readStreamOptions(value: unknown, stream: boolean, warn: Warn): boolean {
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
