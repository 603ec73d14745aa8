/** What a chat-completions body asks for. Pure: no clock, no log, no engine. */

import type { TemplateVariables } from "../../chat/types.ts";
import { conversationOf, templateVariables } from "../body/prompt.ts";
import { asksFor, readBodyInParts, type ValuesOf, fieldError } from "../body/field.ts";
import {
  usageWanted,
  maxTokensOf,
  timesWanted,
  readSampling,
  type SamplingLimits,
} from "../body/generation.ts";
import { documentOf, guidanceOf } from "../body/guidance.ts";
import { tokenWishesOf, tokenWishFields } from "../body/token-wishes.ts";
import type { PartsResult } from "../../parts.ts";
import { metadata } from "../body/stored.ts";
import type { Warn } from "../body/warnings.ts";
import { chatCompletionFields } from "./fields.ts";
import type { JsonObject } from "../../json.ts";

export type ChatCompletionRequest = PartsResult<typeof parseChatCompletionRequest>;
const noTools: ReadonlySet<string> = new Set();
type Given = ValuesOf<typeof chatCompletionFields>;

/** @throws FermataError of status 400 whose `param` is the field at fault */
export function* parseChatCompletionRequest(body: unknown, limits: SamplingLimits, warn: Warn) {
  const reading = { warn, vocabularySize: limits.vocabularySize };
  const given = yield* readBodyInParts(
    chatCompletionFields,
    body,
    reading,
    'Send {"messages": […]}',
  );
  const { messages: sent } = body as { messages: readonly JsonObject[] };
  const { tool_choice: toolChoice = { mode: "auto" }, stop, n, stream } = given;
  const document = documentOf(given);
  const conversation = conversationOf(given, document !== undefined);
  const usage = usageWanted(given);
  if (conversation.prefill !== "" && document !== undefined) {
    const field = "continue_final_message";
    const problem = "cannot be true: the request asks for a whole document";
    throw fieldError("invalid_value", field, problem, "Leave it out");
  }
  return {
    ...conversation,
    /** Null: not given. An empty list is given. */
    tools: given.tools?.definitions ?? null,
    /** Names of the tools whose input is text. */
    customTools: given.tools?.custom ?? noTools,
    toolChoice,
    guidance: guidanceOf(toolChoice, {
      document,
      parallel: given.parallel_tool_calls,
      closeAtLimit: given.close_at_limit,
    }),
    templateVariables: variablesOf(given),
    sampling: readSampling(given, limits),
    stop,
    maxTokens: maxTokensOf(given, limits),
    cacheSalt: given.cache_salt,
    n,
    /** Undefined: none are asked for. */
    topLogprobs: topLogprobsOf(given),
    stream,
    reasonsInContent: given.reasoning_format === "none" || !given.separate_reasoning,
    hidesReasoning: !given.include_reasoning || given.reasoning?.exclude === true,
    /** What the client sent of the answer, to be told before it. */
    echoed: given.echo ? conversation.prefill : "",
    tellsTools: tellsTools(given, warn),
    includeUsage: usage.atEnd,
    continuousUsage: usage.continuous,
    tokens: asksFor(tokenWishFields, given) ? tokenWishesOf(given) : undefined,
    times: timesWanted(given),
    /** To be kept, under these labels. */
    stored: given.store
      ? { metadata: metadata.read(given.metadata, "metadata", reading), messages: sent }
      : null,
  };
}

function variablesOf({ reasoning, documents, ...given }: Given): TemplateVariables {
  const { effort, reasoning_effort: other, enabled } = reasoning ?? {};
  return templateVariables(effort ?? other ?? given.reasoning_effort, {
    ...(documents === undefined ? {} : { documents }),
    ...(enabled === undefined ? {} : { enable_thinking: enabled }),
    ...given.chat_template_kwargs,
  });
}

function tellsTools({ fermata, stream }: Given, warn: Warn): boolean {
  const isWanted = fermata?.tool_status === true;
  if (isWanted && !stream) warn("fermata.tool_status", "has no effect without stream");
  return isWanted && stream;
}

function topLogprobsOf(given: Given): number | undefined {
  const { logprobs, top_logprobs: top = 0, n_probs: alternatives = 0 } = given;
  if (logprobs || alternatives > 0) return Math.max(top, alternatives);
  if (top === 0) return undefined;
  const remedy = 'Send "logprobs": true too';
  throw fieldError("invalid_value", "top_logprobs", "needs logprobs", remedy);
}
