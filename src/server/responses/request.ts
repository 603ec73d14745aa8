/** What a responses body asks for, and the response object that repeats it. Pure: no clock, no log, no engine, no store. */

import { readBodyInParts, type ValuesOf, fieldError } from "../body/field.ts";
import { documentOf, guidanceOf } from "../body/guidance.ts";
import { readSampling, type SamplingLimits, timesWanted } from "../body/generation.ts";
import { templateVariables } from "../body/prompt.ts";
import type { Warn } from "../body/warnings.ts";
import { toFermataError } from "../http/error-replies.ts";
import { FermataError } from "../../errors.ts";
import type { PartsResult } from "../../parts.ts";
import { responseFields } from "./fields.ts";
import { compactionTrigger } from "./input/items.ts";
import type { History } from "./input/history.ts";
import { withSettings } from "./input/settings.ts";
import type { ServerConfig } from "../services.ts";
import type { Item, ResponseObject } from "./types.ts";
import type { JsonObject } from "../../json.ts";

export type ResponsesRequest = PartsResult<typeof parseResponsesRequest>;

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function* parseResponsesRequest(body: unknown, limits: SamplingLimits, warn: Warn) {
  const reading = { warn, vocabularySize: limits.vocabularySize };
  const given = yield* readBodyInParts(responseFields, body, reading, 'Send {"input": "…"}');
  const { previous_response_id: previousResponseId = null, conversation = null } = given;
  if (previousResponseId !== null && conversation !== null) {
    const problem = "excludes previous_response_id: both set the history";
    throw fieldError("invalid_value", "conversation", problem, "Send one of the two");
  }
  const hasHistory = previousResponseId !== null || conversation !== null;
  const compacts = given.input.at(-1)?.type === compactionTrigger;
  const input = compacts ? given.input.slice(0, -1) : given.input;
  if (input.length === 0 && (compacts || given.instructions === undefined) && !hasHistory) {
    const problem = "is missing, and there is nothing else to answer";
    throw fieldError("missing_field", "input", problem, 'Send {"input": "…"}');
  }
  const { reasoning, fermata } = given;
  // A summary is text, whatever the turns were allowed to be.
  const { tool_choice: toolChoice = { mode: "auto" } } = compacts ? {} : given;
  const { format, verbosity = null } = given.text ?? {};
  if (verbosity !== null && verbosity !== "medium")
    warn("text.verbosity", "has no effect: the model was not trained on it");
  // The names of its tools are those of the plan.
  const { allowed: _, ...choice } = toolChoice;
  const limit = given.max_output_tokens ?? given.n_predict ?? -1;
  return {
    model: given.model ?? null,
    input,
    /** The output is a compaction item. */
    compacts,
    instructions: given.instructions ?? null,
    previousResponseId,
    conversationId: conversation,
    /** Null: the server's default. */
    store: given.store ?? null,
    background: given.background,
    stream: given.stream,
    times: timesWanted(given),
    /** Null: not given. An empty list is given. */
    tools: compacts ? { tools: [], wire: [] } : (given.tools ?? null),
    toolChoice,
    guidance: guidanceOf(choice, {
      document: documentOf(given, { document: format?.document, field: "text.format" }),
      parallel: given.parallel_tool_calls,
      closeAtLimit: false,
    }),
    /** A form that another field than `text.format` sets. */
    constraint: documentOf(given),
    /** As it came, for the response's echo. */
    wireToolChoice: (body as JsonObject)["tool_choice"] ?? "auto",
    maxToolCalls: given.max_tool_calls ?? null,
    /** Null: no limit but the context's. */
    maxOutputTokens: limit === -1 ? null : limit,
    /** Which field says so. */
    limitField:
      given.max_output_tokens === undefined && given.n_predict !== undefined
        ? "n_predict"
        : "max_output_tokens",
    sampling: readSampling(given, limits),
    /** Undefined: no log-probabilities. */
    topLogprobs: topLogprobsOf(given),
    templateVariables: templateVariables(reasoning?.effort, given.chat_template_kwargs),
    truncation: given.truncation,
    carriesReasoning: given.include.includes("reasoning.encrypted_content"),
    textFormat: format?.wire ?? { type: "text" },
    verbosity,
    reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
    metadata: given.metadata,
    cacheSalt: given.cache_salt,
    promptCacheKey: given.prompt_cache_key ?? null,
    safetyIdentifier: given.safety_identifier ?? null,
    user: given.user ?? null,
    /** Null: the server's default. */
    events: fermata?.events ?? null,
    handling: fermata?.tools ?? null,
  };
}

const settingTypes = new Set(["additional_tools", "configuration_update"]);

/** Does it change what follows it, also in later turns? */
export function isSetting({ type }: Item): boolean {
  return settingTypes.has(type);
}

/** As items of its conversation change it. @throws as `withSettings` */
export function configured(request: ResponsesRequest, { items, input }: History): ResponsesRequest {
  const settings = [...items, ...input].filter(isSetting);
  return settings.length === 0 ? request : withSettings(request, settings);
}

/** Asked for by what is to be included, or by how many alternatives. */
function topLogprobsOf(given: ValuesOf<typeof responseFields>): number | undefined {
  const { include, top_logprobs: top = 0 } = given;
  return include.includes("message.output_text.logprobs") ? top : top || undefined;
}

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

/** Errors of the chat layer about messages name the field that the messages came from. */
export function ofInput(thrown: unknown): FermataError {
  const error = toFermataError(thrown);
  if (error.param !== "messages") return error;
  return new FermataError(error.code, error.message, {
    param: "input",
    size: error.size,
    cause: error.cause,
  });
}

/** The flag is for streams: other clients do not see the calls before the response ends. */
export function waitsForOutputs(
  { handling, stream }: Pick<ResponsesRequest, "handling" | "stream">,
  { responsesTools }: Pick<ServerConfig, "responsesTools">,
): boolean {
  return handling === null ? stream && responsesTools === "held" : handling === "held";
}
