/** The generation behind a response: its items as messages, its tools, and the tool loop. */

import type {
  ChatMessage,
  ChatRequest,
  HeldTurn,
  PromptRequest,
  WrittenRound,
} from "../../chat/types.ts";
import type { Sink } from "../../tools/event-stream.ts";
import type { RunEvent } from "../../tools/types.ts";
import { messagesFor, type RunContext, runEvents } from "../answer/answer.ts";
import { finishInTurns } from "../../parts.ts";
import { generateSummary } from "./input/compaction.ts";
import { toMessages } from "./input/messages.ts";
import type { ResponsesRequest } from "./request.ts";
import type { ToolPlan } from "./tools/tool-plan.ts";
import { fitted } from "./input/truncation.ts";
import type { Item } from "./types.ts";

/** @param items all that the model reads, but the instructions. @throws as `runEvents` */
export async function generateResponse(
  request: ResponsesRequest,
  {
    items,
    plan,
    signal,
    owner,
    onTokens,
    heldTurn,
    written,
    context,
  }: {
    items: readonly Item[];
    plan: ToolPlan;
    signal: AbortSignal;
    owner: string;
    /** See `ChatRequest`. */
    onTokens: ChatRequest["onTokens"];
    heldTurn?: HeldTurn | null | undefined;
    written?: WrittenRound | undefined;
    context: RunContext;
  },
  sink: Sink<RunEvent>,
): Promise<void> {
  const { target } = context;
  const read = await finishInTurns(toMessages(items, request.instructions, plan.names));
  if (request.compacts) {
    const prompt = { messages: read, templateVariables: request.templateVariables, owner };
    const run = { signal, onTokens, written, context };
    return await generateSummary(request, prompt, run, sink);
  }
  const { templateVariables } = request;
  const maxTokens = request.maxOutputTokens ?? target.maxTokens;
  const scope = { tools: plan.offered, templateVariables, owner };
  const whole = target.instruct(read);
  const promptOf = (some: readonly ChatMessage[]): PromptRequest => ({
    messages: messagesFor(plan.mode, some),
    ...scope,
  });
  const messages =
    request.truncation === "auto"
      ? await fitted(whole, target, { maxTokens, signal, promptOf })
      : whole;
  const conversation = {
    messages,
    sampling: request.sampling,
    stop: [],
    maxTokens,
    topLogprobs: request.topLogprobs,
    templateVariables,
    guidance: { ...request.guidance, allowed: plan.toolChoice.allowed },
    signal,
    owner,
    cacheSalt: request.cacheSalt,
    onTokens,
    heldTurn,
    written,
  };
  await runEvents(conversation, plan.mode, context, sink);
}
