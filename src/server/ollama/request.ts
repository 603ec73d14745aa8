/** What a body of /api/chat or /api/generate asks for. Pure: no clock, no log, no engine. */

import type { ChatMessage, ChatRequest } from "../../chat/types.ts";
import { fieldError, readBodyInParts, type ValuesOf } from "../body/field.ts";
import { guidanceOf } from "../body/guidance.ts";
import { conversationOf, templateVariables } from "../body/prompt.ts";
import { readSampling, type SamplingLimits } from "../body/generation.ts";
import type { PartsResult } from "../../parts.ts";
import type { Warn } from "../body/warnings.ts";
import { chatFields, generateFields } from "./fields.ts";

/** Without messages nothing is generated. */
export type OllamaRequest = PartsResult<typeof parseChat> &
  // What was said before the messages.
  Pick<ChatRequest, "leadingTokens">;
export type GenerateRequest = PartsResult<typeof parseGenerate>;

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function* parseChat(body: unknown, limits: SamplingLimits, warn: Warn) {
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
    // Clients always send a list: an empty one is not given.
    tools: given.tools?.length ? given.tools : null,
  };
}

/** @throws as `parseChat` */
export function* parseGenerate(body: unknown, limits: SamplingLimits, warn: Warn) {
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
  const messages: ChatMessage[] = [
    ...(system === "" ? [] : [{ role: "system" as const, content: system }]),
    { role: "user", content: prompt },
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
