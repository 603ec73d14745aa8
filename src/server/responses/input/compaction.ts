/**
 * A conversation becomes its users' words, its settings and one summary, which the model writes: by POST /v1/responses/compact, or as
 * the output of a response whose input ends with a `compaction_trigger`. A compaction item carries the summary.
 */

import type { ChatMessage, ChatRequest, PromptRequest, WrittenRound } from "../../../chat/types.ts";
import { pulled, type Sink } from "../../../tools/event-stream.ts";
import type { RunEvent } from "../../../tools/types.ts";
import { type RunContext, runEvents, runRequest } from "../../answer/answer.ts";
import { type Answer, AnswerCollector, collectAnswer } from "../../answer/collect-answer.ts";
import { newId } from "../../answer/ids.ts";
import { fieldError } from "../../body/field.ts";
import { decodeText, encodeText } from "./encoded.ts";
import { isSetting, type ResponsesRequest } from "../request.ts";
import { fitted } from "./truncation.ts";
import { type CompactionItem, type Item, wireResponseUsage } from "../types.ts";

/** Of a request that sets no limit: longer would save too little. */
const maxSummaryTokens = 1024;

const heading = "Summary of the conversation so far:";

/** What asks the model for a summary of what stands before it. */
const summaryRequest =
  "Summarize the conversation so far for someone who continues it and will not see it: the goal, what was asked, what was done and found out, names, paths and figures that matter, and what is still open. Answer with the summary alone.";

/** What the model reads of it. Content of another server's making cannot be read. */
export function compactionText(encoded: string): { text: string; isRead: boolean } {
  const summary = decodeText("summary", encoded);
  return summary === null
    ? {
        text: "[Earlier turns were compacted by another server and cannot be read.]",
        isRead: false,
      }
    : { text: `${heading}\n\n${summary}`, isRead: true };
}

export function compactionItem(summary: string): CompactionItem {
  const encoded = encodeText("summary", summary);
  return { id: newId("cmp"), type: "compaction", encrypted_content: encoded };
}

/** @param prompt what the model would read of the request @throws FermataError: there is nothing, or no summary */
export async function compact(
  body: ResponsesRequest,
  { items, ...prompt }: Pick<PromptRequest, keyof SummarizedPrompt> & { items: Item[] },
  context: RunContext,
  signal: AbortSignal,
): Promise<object> {
  if (items.length === 0)
    throw fieldError("missing_field", "input", "is missing", "Send the items to compact");
  const conversation = { ...(await askForSummary(body, prompt, context, signal)), signal };
  const answer = await collectAnswer(
    pulled((sink) => runRequest(conversation, { kind: "none" }, context, sink)),
  );
  const kept = items.filter(
    (item) => isSetting(item) || (item.type === "message" && item["role"] === "user"),
  );
  return {
    id: newId("resp"),
    object: "response.compaction",
    created_at: Math.floor(Date.now() / 1000),
    output: [...kept, compactionItem(summaryOf(answer, body))],
    usage: wireResponseUsage(answer.finish.usage),
  };
}

/** Pushes the summary as one content, once it is whole. @throws as `compact` and `runEvents` */
export async function generateSummary(
  body: ResponsesRequest,
  prompt: SummarizedPrompt,
  run: Pick<ChatRequest, "signal" | "onTokens"> & {
    written: WrittenRound | undefined;
    context: RunContext;
  },
  sink: Sink<RunEvent>,
): Promise<void> {
  const { context, ...rest } = run;
  const conversation = { ...(await askForSummary(body, prompt, context, run.signal)), ...rest };
  const collector = new AnswerCollector();
  await runEvents(conversation, { kind: "none" }, context, async (event) => {
    collector.add(event);
    if (event.type === "progress") return await sink(event);
    if (event.type !== "finish") return;
    await sink({ type: "content", text: summaryOf(collector.answer(), body) });
    // A summary that the limit cut is one.
    await sink({ ...event, reason: "stop" });
  });
}

type SummarizedPrompt = Pick<PromptRequest, "messages" | "templateVariables" | "owner">;

async function askForSummary(
  body: ResponsesRequest,
  { messages, templateVariables, owner }: SummarizedPrompt,
  { target }: RunContext,
  signal: AbortSignal | undefined,
) {
  const scope = { templateVariables, owner };
  const maxTokens = Math.min(body.maxOutputTokens ?? maxSummaryTokens, target.contextSize);
  const whole = target.instruct(messages);
  const promptOf = (some: readonly ChatMessage[]): PromptRequest => ({
    messages: withRequest(some),
    tools: [],
    ...scope,
  });
  const history =
    body.truncation === "auto"
      ? await fitted(whole, target, { maxTokens, signal, promptOf })
      : whole;
  return {
    messages: withRequest(history),
    sampling: body.sampling,
    stop: [],
    maxTokens,
    cacheSalt: body.cacheSalt,
    ...scope,
  };
}

/** What the model reads for a summary. */
export function withRequest(history: readonly ChatMessage[]): ChatMessage[] {
  return [...history, { role: "user", content: summaryRequest }];
}

/** It takes the place of the turns: there must be one. @throws FermataError invalid_value */
function summaryOf(
  { content, finish }: Answer,
  { limitField }: Pick<ResponsesRequest, "limitField">,
): string {
  const summary = content.trim();
  if (summary !== "") return summary;
  if (finish.reason === "length") {
    const tokens = finish.usage.generatedTokens;
    const problem = `left no room for a summary: the model had not started it after ${tokens} tokens`;
    const remedy = 'Send a larger limit, less input, or "reasoning": {"effort": "none"}';
    throw fieldError("invalid_value", limitField, problem, remedy);
  }
  const remedy = "Send it again with other sampling, or keep it as it is";
  throw fieldError("invalid_value", "input", "was answered with no summary", remedy);
}
