/** A chat request as the body of a chat completion. Pure. */

import { joinSystems } from "../../chat/template/normalize.ts";
import type { ChatMessage, ChatRequest } from "../../chat/types.ts";
import type { JsonObject } from "../../json.ts";
import type { DrySampling, Sampling, TokenRules } from "../../engine/types.ts";
import { FermataError } from "../../errors.ts";
import type { DocumentFormat } from "../../guidance/types.ts";

/** What OpenAI's models sample with: only what differs is sent, since some refuse fields that they do not know. */
export const endpointSampling = {
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  typicalP: 1,
  repeatPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  penaltyLastN: 64,
} satisfies Partial<Sampling>;

/** The same of the samplers that only llama-server and Fermata have: off, or llama.cpp's own numbers. */
const unlessAsked = {
  ...endpointSampling,
  topNSigma: 0,
  xtcProbability: 0,
  xtcThreshold: 0.1,
  dynatempRange: 0,
  dynatempExponent: 1,
  mirostat: 0,
  mirostatTau: 5,
  mirostatEta: 0.1,
  minKeep: 1,
} satisfies Partial<Sampling>;

/** OpenAI's names, and llama-server's for what OpenAI does not have. */
const wireNames: [key: keyof typeof unlessAsked, field: string][] = [
  ["temperature", "temperature"],
  ["topP", "top_p"],
  ["topK", "top_k"],
  ["minP", "min_p"],
  ["typicalP", "typical_p"],
  ["repeatPenalty", "repeat_penalty"],
  ["frequencyPenalty", "frequency_penalty"],
  ["presencePenalty", "presence_penalty"],
  ["penaltyLastN", "repeat_last_n"],
  ["topNSigma", "top_n_sigma"],
  ["xtcProbability", "xtc_probability"],
  ["xtcThreshold", "xtc_threshold"],
  ["dynatempRange", "dynatemp_range"],
  ["dynatempExponent", "dynatemp_exponent"],
  ["mirostat", "mirostat"],
  ["mirostatTau", "mirostat_tau"],
  ["mirostatEta", "mirostat_eta"],
  ["minKeep", "min_keep"],
];

/** vLLM's fields, which no other server is asked for. */
const ruleFields: Record<keyof TokenRules, string> = {
  minTokens: "min_tokens",
  stopTokens: "stop_token_ids",
  bannedTexts: "bad_words",
  banned: "bad_words",
  allowed: "allowed_token_ids",
  keepsStop: "include_stop_str_in_output",
};

/** An assistant's of this request may have its reasoning: some models refuse a next round without it. */
export type RemoteMessage = ChatMessage & {
  /** By the field in which it came. */
  reasoningFields?: Readonly<Record<string, string>>;
};

interface WireTurn {
  model: string;
  messages: readonly RemoteMessage[];
  maxTokens: number | undefined;
  /** The first round of the request: its `tool_choice` counts. */
  isFirst: boolean;
  /** Names of the tools that may still be called; undefined: all. */
  callable: readonly string[] | undefined;
}

/** @throws FermataError unsupported_value: the request asks for what another server cannot be asked for */
export function wireRequest(request: ChatRequest, turn: WireTurn): JsonObject {
  const { guidance, stop, sampling } = request;
  if (request.topLogprobs !== undefined)
    throw unsupported("logprobs", "are not passed on from an agent's endpoint");
  if (request.promptLogprobs !== undefined)
    throw unsupported("prompt_logprobs", "are not passed on from an agent's endpoint");
  for (const [rule, value] of Object.entries(sampling.rules ?? {}))
    if (value !== undefined) {
      const field = ruleFields[rule as keyof TokenRules];
      throw unsupported(field, "is not known to an agent's endpoint");
    }
  if (request.prefill)
    throw unsupported(
      "messages",
      "ends with the start of an answer, and an endpoint cannot continue it",
    );
  if (guidance?.closeAtLimit === true)
    throw unsupported("close_at_limit", "is not known to an agent's endpoint");
  return {
    model: turn.model,
    messages: joinSystems(turn.messages).map(wireMessage),
    stream: true,
    stream_options: { include_usage: true },
    seed: sampling.seed,
    ...wireSampling(sampling),
    ...wireBias(sampling),
    ...(stop.length > 0 && { stop }),
    ...(turn.maxTokens !== undefined && { max_tokens: turn.maxTokens }),
    ...wireTools(request, turn),
    ...(guidance?.document && { response_format: wireFormat(guidance.document) }),
    ...wireVariables(request.templateVariables),
  };
}

function wireBias({ logitBias, textBias = [], ignoresEnd }: Sampling): object {
  const biases = [...logitBias, ...textBias];
  return {
    ...(biases.length > 0 && { logit_bias: Object.fromEntries(biases) }),
    ...(ignoresEnd === true && { ignore_eos: true }),
  };
}

function wireSampling({ dry, ...sampling }: Sampling): object {
  const differing = wireNames.flatMap(([key, field]) => {
    const value = sampling[key];
    return value === undefined || value === unlessAsked[key] ? [] : [[field, value] as const];
  });
  return { ...Object.fromEntries(differing), ...(dry !== undefined && wireDry(dry)) };
}

function wireDry(dry: DrySampling): object {
  return {
    dry_multiplier: dry.multiplier,
    dry_base: dry.base,
    dry_allowed_length: dry.allowedLength,
    dry_penalty_last_n: dry.penaltyLastN,
    dry_sequence_breakers: dry.sequenceBreakers,
  };
}

function wireTools(
  { tools, toolMode, guidance }: ChatRequest,
  { isFirst, callable }: WireTurn,
): object {
  const { allowed } = guidance ?? {};
  const known = tools.filter(({ name }) => allowed?.includes(name) ?? true);
  if (toolMode === "none" || known.length === 0) return {};
  const left = known.filter(({ name }) => callable?.includes(name) ?? true);
  // Some servers refuse a history with calls and no tools.
  const offered = left.length === 0 ? known : left;
  const isRequired = isFirst && guidance?.toolChoice === "required";
  return {
    tools: offered.map(({ name, description, parameters, strict }) => ({
      type: "function",
      function: { name, description, parameters, strict },
    })),
    ...(isRequired && { tool_choice: "required" }),
    ...(left.length === 0 && { tool_choice: "none" }),
    ...(guidance?.parallel === false && { parallel_tool_calls: false }),
  };
}

function wireMessage(message: RemoteMessage): object {
  switch (message.role) {
    case "assistant": {
      const calls = message.toolCalls ?? [];
      if (calls.length === 0) return { role: "assistant", content: message.content };
      return {
        role: "assistant",
        content: message.content === "" ? null : message.content,
        ...message.reasoningFields,
        tool_calls: calls.map(({ id, name, arguments: args }) => ({
          id,
          type: "function",
          function: { name, arguments: args.trim() || "{}" },
        })),
      };
    }
    case "tool":
      return { role: "tool", tool_call_id: message.toolCallId, content: message.content };
    default:
      return { role: message.role, content: message.content };
  }
}

function wireFormat(document: DocumentFormat): object {
  switch (document.kind) {
    case "json_object":
      return { type: "json_object" };
    case "json_schema": {
      const { schema, strict } = document;
      return { type: "json_schema", json_schema: { name: "answer", schema, strict } };
    }
    case "choice":
      throw unsupported("guided_choice", "is not known to an agent's endpoint");
    default:
      throw unsupported(document.field, "is not known to an agent's endpoint");
  }
}

function wireVariables(variables: ChatRequest["templateVariables"]): object {
  const { reasoning_effort: effort, ...rest } = variables ?? {};
  return {
    ...(effort !== undefined && { reasoning_effort: effort }),
    ...(Object.keys(rest).length > 0 && { chat_template_kwargs: rest }),
  };
}

function unsupported(field: string, problem: string): FermataError {
  return new FermataError("unsupported_value", `"${field}" ${problem}. Leave it out.`, {
    param: field,
  });
}
