/** Turns a checked request into the events that its client may see. */

import type { ApiKeys } from "../http/api-keys.ts";
import type { FastifyBaseLogger, FastifyRequest } from "fastify";
import { delegationServer } from "../../agents/delegation.ts";
import type {
  ChatMessage,
  ChatRequest,
  ChatUsage,
  FinishReason,
  ToolDefinition,
} from "../../chat/types.ts";
import { addUsage } from "../../chat/answer/engine-run.ts";
import { noUsage } from "../../engine/generation.ts";
import type { CallJournal, ToolOversight } from "../../tools/oversight.ts";
import type { Sink } from "../../tools/event-stream.ts";
import { instructedMessages, ToolLoop } from "../../tools/tool-loop.ts";
import { unknownServer } from "../../tools/tool-run.ts";
import { checkToolChoice, type ToolChoice } from "../body/tools.ts";
import { callsOfMessages, type ClientHistory, type HistoryGaps } from "../http/history-gaps.ts";
import { clientView } from "./client-view.ts";
import type { RunEvent } from "../../tools/types.ts";
import { TokenTimes } from "./token-times.ts";
import type { RouteContext } from "../context.ts";
import type { Metrics } from "../metrics.ts";
import { type AnswerName, answerOf, type AnswerTrace, type Traces } from "./traces.ts";
import type { Preparation } from "../http/stream-answer.ts";
import type { ServerConfig, ServerServices } from "../services.ts";
import {
  definitionsOf,
  promptToolsOf,
  resolveToolMode,
  type Target,
  type ToolMode,
} from "./target.ts";
import { explainedLength } from "./tool-tokens.ts";

/** `Tool.server` of functions that the client runs while the sequence is held. */
export const clientServer = "client";

export type Conversation = Omit<ChatRequest, "tools" | "toolMode">;

export interface RunContext {
  services: ServerServices;
  /** See `RouteContext`. */
  lease?: RouteContext["lease"];
  target: Target;
  config: ServerConfig;
  keys: ApiKeys;
  metrics: Metrics;
  gaps: HistoryGaps;
  traces: Traces;
  answer: AnswerName;
  log: FastifyBaseLogger;
  /** `performance.now()` at the arrival of the request. */
  startedAt: number;
  /** The stream waits for it before it opens. */
  preparation?: Preparation;
  /** For clients that send the whole history. */
  history?: ClientHistory;
  /** The client asked for the states of tools. */
  tellsTools?: boolean;
  /** Where the wire tells them. */
  times?: TokenTimes;
  /** The person who looks on is asked about tools that are not read-only. Default: no. */
  asksPerson?: boolean | undefined;
  /** A person looks on, who can answer questions of tools' servers. Default: no. */
  isWatched?: boolean | undefined;
  /** The run outlives the process. */
  journal?: CallJournal | undefined;
}

/** What a body with messages asks of the prompt, on every wire that has them. */
interface AskedPrompt extends Pick<
  Conversation,
  "messages" | "prefill" | "openTurn" | "templateVariables"
> {
  /** Null: not given. An empty list is given. */
  tools: ToolDefinition[] | null;
  toolChoice: ToolChoice;
}

interface Asked
  extends
    AskedPrompt,
    Pick<
      Conversation,
      "sampling" | "stop" | "maxTokens" | "guidance" | "topLogprobs" | "cacheSalt"
    > {}

/** @param id of the answer; default: the request's @throws FermataError invalid_value: there is no such tool to choose */
export function planAnswer(
  asked: Asked,
  target: Target,
  { request, context, id }: { request: FastifyRequest; context: RouteContext; id?: string },
) {
  const { sampling, stop, maxTokens, guidance, topLogprobs, cacheSalt } = asked;
  const prompt = promptOf(asked, target, request);
  const mode = resolveToolMode(asked, target.tools);
  checkToolChoice(asked.toolChoice, definitionsOf(mode));
  const calls = callsOfMessages(asked.messages);
  return {
    conversation: { ...prompt, sampling, stop, maxTokens, guidance, topLogprobs, cacheSalt },
    mode,
    run: {
      ...context,
      target,
      answer: answerOf(request, id),
      log: request.log,
      history: { owner: prompt.owner, conversationKey: null, calls },
    },
  };
}

/** The tokens of the prompt that such a body makes. */
export async function countPrompt(
  asked: AskedPrompt,
  target: Target,
  request: FastifyRequest,
): Promise<number> {
  const mode = resolveToolMode(asked, target.tools);
  const prompt = promptOf(asked, target, request);
  const messages = messagesFor(mode, prompt.messages);
  const tools = [...promptToolsOf(mode)];
  return await target.chat.countPromptTokens({ ...prompt, messages, tools }, { mayExceed: true });
}

/** As the model reads them: with what the servers say about the tools that it may call. */
export function messagesFor(mode: ToolMode, messages: readonly ChatMessage[]): ChatMessage[] {
  return instructedMessages(messages, mode.kind === "internal" ? mode.tools : []);
}

function promptOf(
  { messages, prefill, openTurn, templateVariables }: AskedPrompt,
  target: Target,
  request: FastifyRequest,
) {
  const instructed = target.instruct(messages);
  const owner = request.owner;
  return { messages: instructed, prefill, openTurn, templateVariables, owner };
}

/** `runEvents` for wires with one text per answer. */
export async function runRequest(
  conversation: Conversation,
  mode: ToolMode,
  context: RunContext,
  sink: Sink<RunEvent>,
): Promise<void> {
  const { gaps, history } = context;
  const view = clientView(mode, context.tellsTools ?? false);
  await runEvents(conversation, mode, context, async (event) => {
    if (event.type === "finish" && history !== undefined)
      gaps.learn(
        history,
        event.calls.map(({ id }) => id),
      );
    const shown = view(event);
    if (shown !== null) await sink(shown);
  });
}

/**
 * Pushes every event. The usage includes the agents below.
 * @throws whatever ended the generation, the reason of an aborted signal among it
 */
export async function runEvents(
  conversation: Conversation,
  mode: ToolMode,
  context: RunContext,
  sink: Sink<RunEvent>,
): Promise<void> {
  const { answer, startedAt, target } = context;
  const start = { ...answer, model: target.id, owner: conversation.owner, startedAt };
  await context.traces.record(start, (trace) =>
    runTraced(conversation, mode, { ...context, trace }, sink),
  );
}

async function runTraced(
  conversation: Conversation,
  mode: ToolMode,
  context: RunContext & { trace: AnswerTrace },
  sink: Sink<RunEvent>,
): Promise<void> {
  const { answer, log, metrics, startedAt, target, trace } = context;
  const times = context.times ?? new TokenTimes(metrics, startedAt);
  const callEnd = mode.kind === "internal" ? "tool-end" : "call-end";
  let callCount = 0;
  let below: ChatUsage = noUsage;
  const observe = (event: RunEvent): RunEvent => {
    times.observe(event);
    trace.observe(event);
    observeTool(event, context);
    if (event.type === callEnd) callCount++;
    below = addUsage(below, usageBelow(event));
    if (event.type !== "finish") return event;
    throwIfCancelled(event.reason, conversation.signal);
    log.info(
      {
        mode: mode.kind,
        finish_reason: event.reason,
        has_tool_calls: callCount > 0,
        tool_calls: callCount,
      },
      "answer finished",
    );
    return { ...event, usage: addUsage(event.usage, below) };
  };
  try {
    const onTokens: Conversation["onTokens"] = (drawn, tokens) => {
      times.drew(drawn);
      conversation.onTokens?.(drawn, tokens);
    };
    const watched = { ...conversation, onTokens, watch: trace.watch, client: answer.client };
    await startEvents(watched, mode, context, async (event) => {
      const told = withinLimit(event, conversation.maxTokens);
      if (told !== null) await sink(observe(told));
    });
  } catch (error) {
    throw await explainedLength(error, mode, target.chat);
  }
}

/** The usage of an agent below this run, when that agent ends. */
function usageBelow(event: RunEvent): ChatUsage {
  if (event.type !== "tool-report" || event.report.type !== "agent") return noUsage;
  const inner = event.report.event;
  return inner.type === "finish" ? inner.usage : usageBelow(inner);
}

async function startEvents(
  asked: Conversation,
  mode: ToolMode,
  context: RunContext,
  sink: Sink<RunEvent>,
): Promise<void> {
  const { target, config, log } = context;
  const maxTokens = engineLimit(asked.maxTokens);
  const readsAhead = asked.maxTokens === 0;
  const conversation = { ...asked, maxTokens, readsAhead, onPrepare: context.preparation?.add };
  if (mode.kind !== "internal") {
    const tools = [...promptToolsOf(mode)];
    const request = { ...conversation, tools, toolMode: mode.kind, logger: log };
    if (target.run !== null) return await target.run.generate(request, sink);
    for await (const event of target.chat.generate(request)) await sink(event);
    return;
  }
  const options = {
    ...mode.limits,
    maxRounds: config.maxToolRounds,
    maxCalls: Math.min(mode.limits?.maxCalls ?? Infinity, config.maxToolCalls ?? Infinity),
    // Calls of the client have a time limit of their own.
    maxSeconds: mode.tools.some(({ server }) => server === clientServer)
      ? undefined
      : config.maxToolSeconds,
    toolTimeoutMs: config.toolTimeoutMs,
    toolTotalTimeoutMs: config.toolTotalTimeoutMs,
    oversight: {
      ...oversightOf(context, conversation.owner),
      asksPerson: context.asksPerson,
      isWatched: context.isWatched,
      journal: context.journal,
    },
    logger: log,
  };
  if (target.run !== null) return await target.run.answer(conversation, mode.tools, options, sink);
  await new ToolLoop(target.chat, conversation, mode.tools, options).run(sink);
}

/** A call of this run, or of an agent below it. */
function observeTool(
  event: RunEvent,
  context: Pick<RunContext, "services" | "metrics" | "log">,
  agent?: string,
): void {
  if (event.type === "tool-report" && event.report.type === "agent")
    return observeTool(event.report.event, context, event.report.agent);
  if (event.type !== "tool-end") return;
  const { metrics, log } = context;
  const { call, server, outcome, milliseconds } = event;
  metrics.toolCalls.inc({ ...toolLabels(event, context.services), outcome });
  metrics.toolDuration.observe(milliseconds / 1000);
  const tool = server === unknownServer ? "unknown" : call.name;
  const details = {
    server,
    tool,
    outcome,
    milliseconds: Math.round(milliseconds),
    ...(call.mayFit === true ? { validation: call.problem } : {}),
  };
  log.info(agent === undefined ? details : { ...details, agent }, "tool call ended");
}

/** Metrics keep every label, so names that a model or a client invents become no labels. */
function toolLabels(
  { call, server }: Extract<RunEvent, { type: "tool-end" }>,
  { tools }: Pick<ServerServices, "tools">,
): { server: string; tool: string } {
  if (server === unknownServer) return { server, tool: "unknown" };
  const isOurs =
    server === delegationServer ||
    tools?.tools().some((tool) => tool.server === server) === true ||
    tools?.servers?.().some(({ name }) => name === server) === true;
  if (isOurs) return { server, tool: call.name };
  return { server: server === clientServer ? server : "request", tool: "any" };
}

/** Calls of every request are approved and recorded by the same rules. */
export function oversightOf(
  { services: { approvals, audit }, keys }: Pick<RunContext, "services" | "keys">,
  owner: string,
): ToolOversight {
  return { owner, approvals, audit, mayRunTools: keys.mayRunTools(owner) };
}

function throwIfCancelled(reason: FinishReason, signal: AbortSignal | undefined): void {
  if (reason === "cancelled") signal?.throwIfAborted();
}

/** A limit of 0 tokens reads the prompt into the cache and answers nothing. The engine draws one token at least. */
export function engineLimit(maxTokens: number | undefined): number | undefined {
  return maxTokens === 0 ? 1 : maxTokens;
}

/** The event for the client, when `engineLimit` changed a limit of 0; null: none. */
export function withinLimit(event: RunEvent, maxTokens: number | undefined): RunEvent | null {
  if (maxTokens !== 0 || event.type === "progress") return event;
  if (event.type !== "finish") return null;
  const usage = { ...event.usage, generatedTokens: 0, reasoningTokens: 0 };
  const reason = event.reason === "cancelled" ? event.reason : "length";
  return { type: "finish", reason, calls: [], usage };
}
