/** What a body of /api/chat or /api/generate asks for. Pure: no clock, no log, no engine. */

import type { TemplateVariables, ToolDefinition } from "../../chat/types.ts";
import type { Sampling } from "../../engine/types.ts";
import type { DocumentFormat, Guidance } from "../../guidance/types.ts";
import { fieldError, readBodyInParts, type ValuesOf } from "../body/field.ts";
import { guidanceOf } from "../body/guidance.ts";
import { type Conversation, conversationOf, templateVariables } from "../body/prompt.ts";
import type { ToolChoice } from "../body/tools.ts";
import { readSampling, type SamplingLimits } from "../body/generation.ts";
import type { Parts } from "../../parts.ts";
import type { Warn } from "../body/warnings.ts";
import { chatFields, generateFields } from "./fields.ts";

/** Without messages nothing is generated. */
export interface OllamaRequest extends Conversation {
  /** What was said before the messages. */
  leadingTokens?: Int32Array | undefined;
  /** Null: not given. An empty list is not given, either: Ollama's clients always send one. */
  tools: ToolDefinition[] | null;
  toolChoice: ToolChoice;
  document: DocumentFormat | undefined;
  guidance: Guidance;
  templateVariables: TemplateVariables;
  sampling: Sampling;
  stop: string[];
  maxTokens: number | undefined;
  stream: boolean;
  /** Undefined: none are asked for. */
  topLogprobs: number | undefined;
}

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function* parseChatInParts(
  body: unknown,
  limits: SamplingLimits,
  warn: Warn,
): Parts<OllamaRequest> {
  const example = 'Send {"model": "…", "messages": […]}';
  const given = yield* readBodyInParts(chatFields, body, { warn }, example);
  const { messages } = given;
  return {
    ...answerOf(given, limits),
    ...conversationOf({
      messages,
      continue_final_message: undefined,
      add_generation_prompt: undefined,
    }),
    tools: given.tools?.length ? given.tools : null,
  };
}

export interface GenerateRequest extends OllamaRequest {
  prompt: string;
  /** What stands behind the answer; empty: nothing does. */
  suffix: string;
  /** The prompt is not put into the template. */
  raw: boolean;
}

/** @throws as `parseChatInParts` */
export function* parseGenerateInParts(
  body: unknown,
  limits: SamplingLimits,
  warn: Warn,
): Parts<GenerateRequest> {
  const reading = { warn, vocabularySize: limits.vocabularySize };
  const example = 'Send {"model": "…", "prompt": "…"}';
  const given = yield* readBodyInParts(generateFields, body, reading, example);
  const { prompt, suffix, system, raw, context } = given;
  if (raw && suffix !== "") throw outOfPlace("suffix", "in a raw prompt");
  if (raw || suffix !== "") {
    const place = raw ? "in a raw prompt" : "beside a suffix";
    if (system !== "") throw outOfPlace("system", place);
    if (context?.length) throw outOfPlace("context", place);
  }
  const messages = [
    ...(system === "" ? [] : [{ role: "system" as const, content: system }]),
    { role: "user" as const, content: prompt },
  ];
  return {
    ...answerOf(given, limits),
    messages: prompt === "" ? [] : messages,
    prefill: "",
    openTurn: true,
    leadingTokens: context,
    tools: context?.length ? [] : null,
    prompt,
    suffix,
    raw,
  };
}

function outOfPlace(field: string, place: string): Error {
  const remedy = "Put it into the prompt, or leave it out";
  return fieldError("invalid_value", field, `has no place ${place}`, remedy);
}

type Given = Omit<ValuesOf<typeof chatFields>, "messages" | "tools">;

function answerOf(given: Given, limits: SamplingLimits) {
  const { options, format, think, stream, logprobs, top_logprobs: top = 0 } = given;
  const { num_predict: asked = limits.maxTokens ?? -1, stop = [], ...sampling } = options ?? {};
  const document = format ?? undefined;
  const toolChoice = { mode: "auto" as const };
  return {
    document,
    toolChoice,
    guidance: guidanceOf(toolChoice, { document, parallel: true, closeAtLimit: false }),
    templateVariables:
      typeof think === "boolean" ? { enable_thinking: think } : templateVariables(think, {}),
    sampling: readSampling(sampling, limits),
    topLogprobs: logprobs ? top : undefined,
    stop,
    maxTokens: asked < 0 ? undefined : Math.min(asked, limits.contextSize),
    stream,
  };
}
