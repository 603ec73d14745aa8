/** A responses body as plain, checked data. Pure: no clock, no log, no engine, no store. */

import { readTemplateVariables } from "../body/template-variables.ts";
import { readModel } from "../body/common.ts";
import type { TemplateVariables } from "../../chat/types.ts";
import type { Sampling } from "../../engine/types.ts";
import type { DocumentFormat, Guidance } from "../../guidance/types.ts";
import {
  expectBody,
  fieldError,
  isAbsent,
  isObject,
  kindOf,
  readBoolean,
  readNumber,
  readText,
  type JsonObject,
} from "../body/fields.ts";
import { checkParameters, warnOfOthers } from "../body/parameter.ts";
import { responseParameters } from "./fields.ts";
import { guidanceOf, readDocument, readResponseFormat } from "../body/guidance.ts";
import { readSampling, type SamplingLimits } from "../body/sampling.ts";
import { parseToolChoice, type ToolChoice } from "../body/tool-choice.ts";
import type { Warn } from "../body/warnings.ts";
import { parseItems } from "./items.ts";
import { parseMetadata } from "../body/metadata.ts";
import { parseResponseTools, type RequestedTools } from "./tools.ts";
import type { Item } from "./types.ts";

const maxTopLogprobs = 20;
const maxNameLength = 512;

export type EventDialect = "standard" | "extended";
export type ToolHandling = "close" | "held";

export interface ResponsesRequest {
  model: string | null;
  input: Item[];
  instructions: string | null;
  previousResponseId: string | null;
  conversationId: string | null;
  /** Null: the server's default. */
  store: boolean | null;
  background: boolean;
  stream: boolean;
  tools: RequestedTools | null;
  toolChoice: ToolChoice;
  guidance: Guidance;
  /** As it came; "auto" if it did not. */
  wireToolChoice: unknown;
  maxToolCalls: number | null;
  maxOutputTokens: number | null;
  sampling: Sampling;
  /** Undefined: no log-probabilities. */
  topLogprobs: number | undefined;
  templateVariables: TemplateVariables;
  truncation: "auto" | "disabled";
  textFormat: JsonObject;
  verbosity: string | null;
  reasoning: { effort: string | null; summary: string | null };
  metadata: Record<string, string>;
  promptCacheKey: string | null;
  safetyIdentifier: string | null;
  user: string | null;
  /** Null: the server's default. */
  events: EventDialect | null;
  handling: ToolHandling | null;
}

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function parseResponsesRequest(
  body: unknown,
  limits: SamplingLimits,
  warn: Warn,
): ResponsesRequest {
  expectBody(body, 'Send {"input": "…"}');
  checkParameters(responseParameters, body, warn);
  const previousResponseId = readText(body, "previous_response_id");
  const conversationId = readConversation(body["conversation"]);
  if (previousResponseId !== null && conversationId !== null) {
    const problem = "excludes previous_response_id: both would say what came before";
    throw fieldError("invalid_value", "conversation", problem, "Send one of the two");
  }
  const reasoning = readReasoning(body["reasoning"], warn);
  const toolChoice = parseToolChoice(body["tool_choice"]);
  const { textFormat, document, verbosity } = readTextOptions(body["text"], warn);
  return {
    model: readModel(body),
    input: parseItems(body["input"], "input", warn),
    instructions: readInstructions(body),
    previousResponseId,
    conversationId,
    store: isAbsent(body["store"]) ? null : readBoolean(body, "store", true),
    background: readBoolean(body, "background", false),
    stream: readBoolean(body, "stream", false),
    tools: parseResponseTools(body["tools"], warn),
    toolChoice,
    guidance: guidanceOf(toolChoice, {
      document: readDocument(body, { document, field: "text.format" }),
      parallel: readBoolean(body, "parallel_tool_calls", true),
      closeAtLimit: false,
    }),
    wireToolChoice: body["tool_choice"] ?? "auto",
    maxToolCalls: readNumber(body, "max_tool_calls", countRange, null),
    maxOutputTokens: readMaxOutputTokens(body),
    sampling: readSampling(body, limits),
    topLogprobs: readTopLogprobs(body),
    templateVariables: readTemplateVariables(body, reasoning.effort, "reasoning.effort"),
    truncation: readChoice(body, "truncation", ["auto", "disabled"], "disabled"),
    textFormat,
    verbosity,
    reasoning,
    metadata: parseMetadata(body["metadata"]),
    promptCacheKey: readName(body, "prompt_cache_key"),
    safetyIdentifier: readName(body, "safety_identifier"),
    user: readName(body, "user"),
    ...readExtension(body["fermata"]),
  };
}

/** What is remembered, or repeated in each event. */
function readName(body: JsonObject, field: string): string | null {
  const name = readText(body, field);
  if (name === null || name.length <= maxNameLength) return name;
  const problem = `has ${name.length} characters`;
  throw fieldError("invalid_value", field, problem, `Send at most ${maxNameLength}`);
}

/** Null: no limit but the context's. */
function readMaxOutputTokens(body: JsonObject): number | null {
  const { max_output_tokens: own, n_predict: other } = body;
  if (own === -1 || (isAbsent(own) && other === -1)) return null;
  return readNumber(body, isAbsent(own) ? "n_predict" : "max_output_tokens", countRange, null);
}

const countRange = { min: 1, max: Number.MAX_SAFE_INTEGER, integer: true };

/** The SDK's types allow items here too; their text is what counts. */
function readInstructions(body: JsonObject): string | null {
  return readText(body, "instructions");
}

function readConversation(value: unknown): string | null {
  if (isAbsent(value)) return null;
  const id = isObject(value) ? value["id"] : value;
  if (typeof id === "string" && id !== "") return id;
  const problem = `must be a conversation's id, not ${kindOf(id)}`;
  throw fieldError("invalid_type", "conversation", problem, 'Send "conv_…" or {"id": "conv_…"}');
}

function readChoice<Choice extends string>(
  body: JsonObject,
  field: string,
  choices: readonly Choice[],
  fallback: Choice,
  prefix = "",
): Choice {
  const value = body[field];
  if (isAbsent(value)) return fallback;
  const choice = choices.find((candidate) => candidate === value);
  if (choice !== undefined) return choice;
  const remedy = `Send ${choices.map((candidate) => `"${candidate}"`).join(" or ")}`;
  throw fieldError("invalid_value", `${prefix}${field}`, "is not a known choice", remedy);
}

function readTextOptions(
  value: unknown,
  warn: Warn,
): {
  textFormat: JsonObject;
  document: DocumentFormat | undefined;
  verbosity: string | null;
} {
  const plain = { textFormat: { type: "text" }, document: undefined };
  if (isAbsent(value)) return { ...plain, verbosity: null };
  if (!isObject(value)) {
    const problem = `must be an object, not ${kindOf(value)}`;
    throw fieldError("invalid_type", "text", problem, 'Send {"format": {"type": "text"}}');
  }
  warnOfOthers(value, "text", ["format", "verbosity"], warn);
  const verbosity = readText(value, "verbosity", "text.");
  if (verbosity !== null && verbosity !== "medium")
    warn("text.verbosity", "has no effect: the model was not trained on it");
  const { format } = value;
  if (isAbsent(format)) return { ...plain, verbosity };
  if (!isObject(format)) {
    const problem = `must be an object, not ${kindOf(format)}`;
    throw fieldError("invalid_type", "text.format", problem, 'Send {"type": "text"}');
  }
  const document = readResponseFormat(format, "text.format") ?? undefined;
  return { textFormat: format, document, verbosity };
}

/** Asked for by what is to be included, or by how many alternatives. */
function readTopLogprobs(body: JsonObject): number | undefined {
  const { include } = body;
  if (!isAbsent(include) && !Array.isArray(include)) {
    const problem = `must be an array, not ${kindOf(include)}`;
    throw fieldError("invalid_type", "include", problem, "Send an array of names");
  }
  const range = { min: 0, max: maxTopLogprobs, integer: true };
  const top = readNumber(body, "top_logprobs", range, undefined);
  const isIncluded = include?.includes("message.output_text.logprobs") === true;
  return isIncluded ? (top ?? 0) : top || undefined;
}

function readReasoning(
  value: unknown,
  warn: Warn,
): { effort: string | null; summary: string | null } {
  if (isAbsent(value)) return { effort: null, summary: null };
  if (!isObject(value)) {
    const problem = `must be an object, not ${kindOf(value)}`;
    throw fieldError("invalid_type", "reasoning", problem, 'Send {"effort": "medium"}');
  }
  warnOfOthers(value, "reasoning", ["effort", "summary"], warn);
  return {
    effort: readText(value, "effort", "reasoning."),
    summary: readText(value, "summary", "reasoning."),
  };
}

/** What OpenAI's wire has no words for, in one place that no client sends by accident. */
function readExtension(value: unknown): {
  events: EventDialect | null;
  handling: ToolHandling | null;
} {
  if (isAbsent(value)) return { events: null, handling: null };
  if (!isObject(value)) {
    const problem = `must be an object, not ${kindOf(value)}`;
    throw fieldError("invalid_type", "fermata", problem, 'Send {"events": "extended"}');
  }
  // Nobody sends it by accident: what is unknown is a slip.
  const unknown = Object.keys(value).find((key) => key !== "events" && key !== "tools");
  if (unknown !== undefined) {
    const field = `fermata.${unknown.slice(0, 64)}`;
    throw fieldError("invalid_value", field, "is not known", "Send events or tools");
  }
  return {
    events: isAbsent(value["events"])
      ? null
      : readChoice<EventDialect>(value, "events", ["standard", "extended"], "standard", "fermata."),
    handling: isAbsent(value["tools"])
      ? null
      : readChoice<ToolHandling>(value, "tools", ["close", "held"], "close", "fermata."),
  };
}
