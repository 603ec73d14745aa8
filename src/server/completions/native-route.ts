/** POST /completion and /infill, as llama-server has them. */

import type { RouteOptions } from "fastify";
import { drawSeed, withSeed } from "../answer/choices.ts";
import type { RouteContext } from "../context.ts";
import { compileText } from "../../chat/answer/text-grammar.ts";
import { withTextBias } from "../../engine/engine.ts";
import type { GenerateRequest } from "../../engine/types.ts";
import { FermataError } from "../../errors.ts";
import { NativeAnswer, nativeCompletionStream, type NativeEvent } from "./native-completion.ts";
import type { SamplingLimits } from "../body/generation.ts";
import type { LineLimits } from "../body/line-limits.ts";
import { Infill } from "../answer/infill.ts";
import { type NativeRequest, parseInfill, parseNativeCompletion } from "./native-fields.ts";
import { tokenizePrompt } from "../answer/tokenize-prompt.ts";
import type { ServerServices } from "../services.ts";
import { requestOwner } from "../http/access.ts";
import { streamAnswer } from "../http/stream-answer.ts";
import { engineLimit } from "../answer/answer.ts";
import { chatFinish } from "../answer/text-run.ts";
import { type AnswerTrace, answerOf } from "../answer/traces.ts";
import { TokenTimes } from "../answer/token-times.ts";
import { warnOfModel } from "../answer/target.ts";
import { withinLines } from "../answer/within-lines.ts";

type Engine = ServerServices["engine"];

/** Reads a body. */
type ReadRequest = (
  body: unknown,
  limits: SamplingLimits,
  warn: (field: string, problem: string) => void,
) => Promise<NativeRequest> | NativeRequest;

export function nativeCompletionRoutes(context: RouteContext): RouteOptions[] {
  const { contextSize } = context.services.model;
  const infill = new Infill(context.services);
  return [
    nativeRoute(context, "/completion", parseNativeCompletion),
    nativeRoute(context, "/infill", async (body, limits, warn) => {
      const { gap, request } = parseInfill(body, limits, warn);
      const prompt = await infill.prompt(gap, contextSize, request.maxTokens);
      return { ...request, prompts: [[prompt]] };
    }),
  ];
}

function nativeRoute(context: RouteContext, url: string, read: ReadRequest): RouteOptions {
  const { services, config, metrics, active, warnings } = context;
  const { engine, model } = services;
  return {
    method: "POST",
    url,
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const sampling = { ...config.sampling, seed: drawSeed(), logitBias: [] };
      const body = await read(request.body, { ...model, sampling }, warnings.warn);
      warnOfModel(body.model, context);
      const abort = new AbortController();
      const signal = AbortSignal.any([active.signalFor(reply), abort.signal]);
      const { document, closeAtLimit, stop, maxTokens, topLogprobs, postSampling } = body;
      const biased = await withTextBias(body.sampling, engine);
      const options = {
        grammar: document && (await compileText(document, engine)),
        closeAtLimit,
        stop,
        maxTokens: engineLimit(maxTokens),
        topLogprobs,
        owner: requestOwner(request),
        cacheSalt: body.cacheSalt,
        postSampling,
        signal,
      };
      const { owner } = options;
      const traced = { ...answerOf(request), model: model.id, owner, startedAt };
      const tokenBytes = (token: number): Uint8Array => engine.tokenBytes(token);
      const shape = { ...body, model: model.id, contextSize: model.contextSize, tokenBytes };
      const prompts = await Promise.all(
        body.prompts.map((pieces) => tokenizePrompt(pieces, engine)),
      );
      const choices = prompts.flatMap((prompt) => Array.from({ length: body.n }, () => prompt));
      const runs = choices.map((prompt, index) => {
        const times = new TokenTimes(metrics, startedAt);
        const text = engine.detokenize(prompt);
        const { seed } = withSeed(body.sampling, index % body.n);
        const told = { ...shape, sampling: { ...body.sampling, seed } };
        const answer = new NativeAnswer(index, text, prompt.length, told, times);
        const sampling = { ...biased, seed };
        const asked = { ...options, sampling, prompt };
        return generate(engine, asked, answer, {
          streamed: body.stream,
          lineLimits: body.lineLimits,
          begin: () => context.traces.begin(traced),
        });
      });
      if (body.stream) {
        await streamAnswer(inTurn(runs), nativeCompletionStream, { request, reply, config });
        return reply;
      }
      try {
        const answers = await Promise.all(runs.map(lastOf));
        return body.isList ? answers : answers[0];
      } catch (error) {
        // Nobody waits for the others.
        abort.abort(error);
        throw error;
      }
    },
  };
}

/** @throws what ended the generation, the reason of an aborted signal among it */
async function* generate(
  engine: Engine,
  request: GenerateRequest,
  answer: NativeAnswer,
  {
    streamed,
    lineLimits,
    begin,
  }: { streamed: boolean; lineLimits: LineLimits; begin(): AnswerTrace },
): AsyncGenerator<NativeEvent, void, void> {
  answer.start();
  const trace = begin();
  let end: "cancelled" | "failed" | undefined = "failed";
  try {
    const { watch, start } = trace;
    const generation = engine.generate({ ...request, watch, client: start.client });
    for await (const event of withinLines(generation, lineLimits)) {
      if (event.type === "progress") {
        for (const data of answer.progress(event)) yield { data };
      } else if (event.type === "text" && !answer.onlyReads) {
        const { text, tokens, logprobs = [] } = event;
        const data = answer.add({ text, tokens: [...tokens], logprobs });
        if (text !== "" || tokens.length > 0) yield { data };
      } else if (event.type === "finish") {
        end = event.reason === "cancelled" ? "cancelled" : undefined;
        if (event.reason === "cancelled") request.signal?.throwIfAborted();
        trace.observe(chatFinish(event));
        yield { data: answer.end(event, streamed) };
      }
    }
  } finally {
    trace.end(end);
  }
}

async function* inTurn(
  runs: readonly AsyncGenerator<NativeEvent, void, void>[],
): AsyncGenerator<NativeEvent, void, void> {
  for (const run of runs) yield* run;
}

async function lastOf(run: AsyncIterable<NativeEvent>): Promise<object> {
  let last: object | null = null;
  for await (const { data } of run) last = data;
  if (last !== null) return last;
  throw new FermataError("internal_error", "The generation ended without a finish event.");
}
