/** POST /api/chat and /api/generate, as Ollama has them. */

import { chatFields, generateFields } from "./fields.ts";
import type { Schema } from "../body/field.ts";
import type { Route } from "../route.ts";
import {
  answer,
  choice,
  list,
  string,
  whole,
  object,
  boolean,
  contentToken,
} from "../body/shapes.ts";
import type { FastifyReply, FastifyRequest } from "fastify";
import { compileText } from "../../chat/answer/text-grammar.ts";
import { pulled, type Sink } from "../../tools/event-stream.ts";
import type { RunEvent } from "../../tools/types.ts";
import { planAnswer, runRequest } from "../answer/answer.ts";
import {
  asCalled,
  namesOf,
  readRequest,
  refuseAgent,
  wantedModel,
  type Target,
} from "../answer/target.ts";
import { tokenizePrompt } from "../answer/tokenize-prompt.ts";
import { runText } from "../answer/text-run.ts";
import { TokenRecord } from "../answer/token-record.ts";
import { TokenTimes } from "../answer/token-times.ts";
import { Infill } from "../answer/infill.ts";
import type { RouteContext } from "../context.ts";
import { waitForServers, Preparation, streamAnswer } from "../http/stream-answer.ts";
import { answerOf } from "../answer/traces.ts";
import { type Format, OllamaAnswer } from "./answer.ts";
import { keepAliveOf } from "../body/keep-alive.ts";
import { isJsonObject } from "../../json.ts";
import { nameOfModel } from "../answer/model-use.ts";
import { parseChat, parseGenerate, type GenerateRequest, type OllamaRequest } from "./request.ts";

const call = answer({
  id: string,
  function: answer({ index: whole, name: string, arguments: object }),
});
const said = { thinking: string, tool_calls: list(call) };
/** An answer, or a line of one. */
function answered(content: Record<string, Schema>, others: Record<string, Schema> = {}): Schema {
  return answer(
    { model: string, created_at: string, ...content, done: boolean },
    {
      ...others,
      logprobs: list(contentToken),
      done_reason: choice("stop", "length", "load", "unload"),
      total_duration: whole,
      load_duration: whole,
      prompt_eval_count: whole,
      prompt_eval_duration: whole,
      eval_count: whole,
      eval_duration: whole,
      warnings: list(string),
    },
  );
}

export function ollamaRoutes(context: RouteContext): Route[] {
  return [chatRoute(context), generateRoute(context)];
}

function chatRoute(context: RouteContext): Route {
  return {
    at: "POST /api/chat",
    summary: "An answer in Ollama's format; a JSON object a line, unless `stream` is false.",
    request: chatFields,
    example: { model: "default", messages: [{ role: "user", content: "Hello!" }], stream: false },
    lines: true,
    answer: answered({
      message: answer({ role: choice("assistant"), content: string }, said),
    }),
    preHandler: waitForServers(context.services.tools, { emptyIsAbsent: true }),
    config: { wire: "ollama" },
    withoutModel: async ({ body }) => unloaded(body, "messages", "chat", context),
    handler: async (request, reply) => {
      const arrivedAt = performance.now();
      const { target, body } = await readRequest(request.body, parseChat, context);
      const name = answeredName(request, target, context);
      const answer = new OllamaAnswer(name, "chat", { ...context, arrivedAt });
      if (body.messages.length === 0) return answer.withoutText(becomes(request, context));
      return await respond(answer, body, runConversation(body, target, request, context), {
        request,
        reply,
        context,
      });
    },
  };
}

function generateRoute(context: RouteContext): Route {
  const { engine } = context.services;
  const infill = new Infill(context.services);
  const tokensOf = ({ prompt, suffix, maxTokens }: GenerateRequest, { contextSize }: Target) =>
    suffix === ""
      ? tokenizePrompt([prompt], engine)
      : infill.prompt({ prefix: prompt, suffix }, contextSize, maxTokens);
  return {
    at: "POST /api/generate",
    summary: "An answer to one prompt in Ollama's format.",
    request: generateFields,
    example: { model: "default", prompt: "Hello!", stream: false },
    lines: true,
    answer: answered({ response: string }, { ...said, context: list(whole) }),
    preHandler: waitForServers(context.services.tools),
    config: { wire: "ollama" },
    withoutModel: async ({ body }) => unloaded(body, "prompt", "generate", context),
    handler: async (request, reply) => {
      const arrivedAt = performance.now();
      const { target, body } = await readRequest(request.body, parseGenerate, context);
      const record = new TokenRecord();
      const name = answeredName(request, target, context);
      const answer = new OllamaAnswer(name, "generate", { ...context, arrivedAt, record });
      const isText = body.raw || body.suffix !== "";
      if (isText) refuseAgent(wantedModel(request.body), context.services, "/api/chat");
      if (body.prompt === "") return answer.withoutText(becomes(request, context));
      const run = isText
        ? runTokens(body, () => tokensOf(body, target), request, context)
        : runConversation(body, target, request, context, record);
      return await respond(answer, body, run, { request, reply, context });
    },
  };
}

/** The answer to a request that has no text and is to unload: no model is loaded for it. Undefined: it is another one. */
function unloaded(
  body: unknown,
  field: "messages" | "prompt",
  format: Format,
  context: RouteContext,
): object | undefined {
  if (!isJsonObject(body) || keepAliveOf(body) !== 0) return undefined;
  const text = body[field] ?? [];
  if (text !== "" && !(Array.isArray(text) && text.length === 0)) return undefined;
  const name = nameOfModel(wantedModel(body), context.services);
  const leaves = context.services.models?.keep(name, 0) ?? true;
  const answer = new OllamaAnswer(asCalled(body, [name]), format, context);
  return answer.withoutText(leaves ? "unload" : "load");
}

function answeredName(
  { body }: FastifyRequest,
  target: Target,
  { services }: RouteContext,
): string {
  return asCalled(body, target.run === null ? namesOf(services.model) : [target.id]);
}

/** What becomes of the model behind a request without text. One that is served alone stays loaded. */
function becomes({ body }: FastifyRequest, { lease }: RouteContext): "load" | "unload" {
  return lease !== undefined && keepAliveOf(body) === 0 ? "unload" : "load";
}

/** Pushes the events of an answer until it ends or `signal` is aborted. */
type Run = (signal: AbortSignal, preparation: Preparation, sink: Sink<RunEvent>) => Promise<void>;

/** @param record gets the tokens, unless tools run here: those of their results are not told */
function runConversation(
  body: OllamaRequest,
  target: Target,
  request: FastifyRequest,
  context: RouteContext,
  record?: TokenRecord,
): Run {
  const startedAt = performance.now();
  const { conversation, mode, run } = planAnswer(body, target, { request, context });
  const { leadingTokens } = body;
  const listeners = mode.kind === "internal" ? undefined : record?.listeners;
  return (signal, preparation, sink) =>
    runRequest(
      { ...conversation, leadingTokens, ...listeners, signal },
      mode,
      { ...run, startedAt, preparation },
      sink,
    );
}

/** A prompt that no template renders. */
function runTokens(
  body: GenerateRequest,
  tokensOf: () => Promise<Int32Array>,
  request: FastifyRequest,
  context: RouteContext,
): Run {
  const { engine, model } = context.services;
  const { document, sampling, stop, maxTokens, topLogprobs } = body;
  const startedAt = performance.now();
  const times = new TokenTimes(context.metrics, startedAt);
  const owner = request.owner;
  const start = { ...answerOf(request), model: model.id, owner, startedAt };
  return async (signal, preparation, sink) => {
    const compiling = document && compileText(document, engine, { leavesOut: true });
    if (compiling !== undefined) preparation.add(compiling);
    const prompt = await tokensOf();
    const grammar = await compiling;
    const asked = { prompt, sampling, stop, maxTokens, topLogprobs, grammar, signal, owner };
    await context.traces.record(start, (trace) => runText(engine, asked, { times, trace }, sink));
  };
}

async function respond(
  answer: OllamaAnswer,
  { stream }: OllamaRequest,
  run: Run,
  {
    request,
    reply,
    context,
  }: { request: FastifyRequest; reply: FastifyReply; context: RouteContext },
): Promise<unknown> {
  const signal = context.active.signalFor(reply);
  const preparation = new Preparation();
  if (stream) {
    const events = pulled<RunEvent, void>((sink) => run(signal, preparation, sink));
    await streamAnswer(events, answer, { request, reply, config: context.config, preparation });
    return reply;
  }
  await run(signal, preparation, async (event) => answer.add(event));
  return reply.type("application/json; charset=utf-8").send(answer.whole());
}
