import type { ChatUsage } from "../../chat/types.ts";
import type { ResponsesRequest } from "./request.ts";
import type { ResponseObject, WireResponseUsage } from "./types.ts";

interface ResponseIdentity {
  id: string;
  /** Unix seconds. */
  createdAt: number;
  model: string;
  stores: boolean;
}

/** The response of a request, before anything was generated. */
export function newResponse(request: ResponsesRequest, identity: ResponseIdentity): ResponseObject {
  const { sampling, verbosity } = request;
  return {
    id: identity.id,
    object: "response",
    created_at: identity.createdAt,
    completed_at: null,
    status: request.background ? "queued" : "in_progress",
    background: request.background,
    error: null,
    incomplete_details: null,
    instructions: request.instructions,
    max_output_tokens: request.maxOutputTokens,
    max_tool_calls: request.maxToolCalls,
    model: identity.model,
    output: [],
    parallel_tool_calls: request.guidance.parallel,
    previous_response_id: request.previousResponseId,
    conversation: request.conversationId === null ? null : { id: request.conversationId },
    prompt_cache_key: request.promptCacheKey,
    reasoning: request.reasoning,
    safety_identifier: request.safetyIdentifier,
    service_tier: "default",
    store: identity.stores,
    temperature: sampling.temperature,
    text: { format: request.textFormat, ...(verbosity === null ? {} : { verbosity }) },
    tool_choice: request.wireToolChoice,
    tools: request.tools?.wire ?? [],
    top_logprobs: request.topLogprobs ?? 0,
    top_p: sampling.topP,
    presence_penalty: sampling.presencePenalty,
    frequency_penalty: sampling.frequencyPenalty,
    truncation: request.truncation,
    usage: null,
    user: request.user,
    metadata: request.metadata,
  };
}

/** Over all rounds, tool results included; see `wireUsage` of chat completions. */
export function wireResponseUsage(usage: ChatUsage): WireResponseUsage {
  const input = usage.promptTokens + usage.resumedTokens;
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage.cachedTokens,
      cache_write_tokens: Math.max(0, input - usage.cachedTokens),
    },
    output_tokens: usage.generatedTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
    total_tokens: input + usage.generatedTokens,
  };
}
