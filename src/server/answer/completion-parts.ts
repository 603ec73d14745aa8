/** Common parts of chat completions and completions: identity, finish reason and usage. */

import { createHash, randomBytes } from "node:crypto";
import type { ChatEvent, ChatUsage, FinishReason } from "../../chat/types.ts";
import {
  answer,
  choice,
  dictionary,
  list,
  nullable,
  oneOf,
  real,
  record,
  string,
  type ValueOf,
  whole,
} from "../body/shapes.ts";
import type { ServedModel, ServerServices } from "../services.ts";
import type { TokenRecord } from "./token-record.ts";

/** Common fields of all chunks of one response. */
export interface ResponseIdentity {
  id: string;
  /** Unix seconds. */
  created: number;
  model: string;
  /** Equal for all answers of one model in one context. */
  system_fingerprint: string;
}

/** @param answers the name of the model or agent that answers @param idMark `ServerConfig.idMark` */
export function newIdentity(
  prefix: "chatcmpl" | "cmpl",
  answers: string,
  served: ServedModel,
  ofReplica = "",
): ResponseIdentity {
  return {
    id: `${prefix}-${ofReplica}${randomBytes(12).toString("hex")}`,
    created: Math.floor(Date.now() / 1000),
    model: answers,
    system_fingerprint: fingerprintOf(served),
  };
}

/** Begins like llama-server's, which contains its build. */
export function fingerprintOf(served: ServedModel): string {
  return `b${createHash("sha256").update(JSON.stringify(served)).digest("hex").slice(0, 10)}`;
}

/** Of the loaded model and its template: what one has written, one with another fingerprint cannot go on with. */
export function modelFingerprint({ chat, engine, model }: ModelServices): string {
  const { vocabularySize, toolFormat } = model;
  const words = JSON.stringify([chat.templateSource, engine.model, vocabularySize, toolFormat]);
  return createHash("sha256").update(words).digest("hex");
}

type ModelServices = Pick<ServerServices, "chat" | "engine" | "model">;

export const finishReason = choice("stop", "length", "tool_calls", "content_filter");
export type WireFinishReason = ValueOf<typeof finishReason>;

/** A cancelled generation has no finish reason: its client is gone or gets an error. */
export function wireFinishReason(reason: FinishReason): WireFinishReason {
  return reason === "cancelled" ? "stop" : reason;
}

/** vLLM's: what ended the text, if a string or a token of the request did; the rest if it was asked for. */
export const choiceExtras = { stop_reason: oneOf(string, whole), token_ids: list(whole) };
export type StopReason = ValueOf<typeof choiceExtras.stop_reason>;

export const promptExtras = {
  prompt_token_ids: list(whole),
  prompt_logprobs: list(
    nullable(dictionary(answer({ logprob: real, rank: nullable(whole), decoded_token: string }))),
  ),
};

/** llama-server's. */
export const timings = record({
  cache_n: whole,
  prompt_n: whole,
  prompt_ms: real,
  prompt_per_token_ms: real,
  prompt_per_second: real,
  predicted_n: whole,
  predicted_ms: real,
  predicted_per_token_ms: real,
  predicted_per_second: real,
});

export function stopReasonOf({
  stopString,
  stopToken,
}: Pick<Extract<ChatEvent, { type: "finish" }>, "stopString" | "stopToken">): {
  stop_reason?: StopReason;
} {
  const reason = stopToken ?? stopString;
  return reason === undefined ? {} : { stop_reason: reason };
}

/** Of one choice of a stream that goes on. */
export function usageSoFar({ prompt, generated }: TokenRecord) {
  return {
    prompt_tokens: prompt.length,
    completion_tokens: generated.length,
    total_tokens: prompt.length + generated.length,
  };
}

export const usage = answer({
  prompt_tokens: whole,
  completion_tokens: whole,
  total_tokens: whole,
  prompt_tokens_details: answer({ cached_tokens: whole, cache_write_tokens: whole }),
  completion_tokens_details: answer({ reasoning_tokens: whole }),
});
export type WireUsage = ValueOf<typeof usage>;

/**
 * The usage over all rounds. Prompt tokens are those that the model read and did not write: the prompt and, in internal
 * mode, the tool results, each counted once. Cached tokens were found in the KV cache.
 */
export function wireUsage(counts: ChatUsage): WireUsage {
  const promptTokens = counts.promptTokens + counts.resumedTokens;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: counts.generatedTokens,
    total_tokens: promptTokens + counts.generatedTokens,
    prompt_tokens_details: {
      cached_tokens: counts.cachedTokens,
      cache_write_tokens: Math.max(0, promptTokens - counts.cachedTokens),
    },
    completion_tokens_details: { reasoning_tokens: counts.reasoningTokens ?? 0 },
  };
}

/** The usage of one prompt's choices: the prompt counts once. @param usages the first choice's comes first */
export function usageOfChoices(usages: readonly [ChatUsage, ...ChatUsage[]]): ChatUsage {
  const sum = (count: (usage: ChatUsage) => number): number =>
    usages.reduce((total, usage) => total + count(usage), 0);
  return {
    ...usages[0],
    generatedTokens: sum((usage) => usage.generatedTokens),
    reasoningTokens: sum((usage) => usage.reasoningTokens ?? 0),
  };
}
