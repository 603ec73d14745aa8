/** POST /completion and /infill, as llama-server has them. */

import type { Schema } from "../body/field.ts";
import { choice, list, oneOf, record, string, whole, yes } from "../body/shapes.ts";
import type { Route } from "../route.ts";
import { collectChoices, drawSeed, runChoices } from "../answer/choices.ts";
import type { RouteContext } from "../context.ts";
import { compileText } from "../../chat/answer/text-grammar.ts";
import type { Sink } from "../../tools/event-stream.ts";
import type { RunEvent } from "../../tools/types.ts";
import { Turns } from "../../turns.ts";
import { NativeCompletionStream, wireNativeCompletion } from "./native-completion.ts";
import type { SamplingLimits } from "../body/generation.ts";
import { Infill } from "../answer/infill.ts";
import {
  type NativeRequest,
  parseInfill,
  parseNativeCompletion,
  infillFields,
  nativeCompletionFields,
} from "./native-fields.ts";
import { tokenizePrompt } from "../answer/tokenize-prompt.ts";
import { streamAnswer } from "../http/stream-answer.ts";
import { runText } from "../answer/text-run.ts";
import { answerOf } from "../answer/traces.ts";
import { warnOfModel } from "../answer/target.ts";
import { textChoices } from "./text-choices.ts";

/** Reads a body. */
type ReadRequest = (
  body: unknown,
  limits: SamplingLimits,
  warn: (field: string, problem: string) => void,
) => Promise<NativeRequest> | NativeRequest;

/** Fewer if `response_fields` says so; a list if the prompt was one. */
const oneAnswer: Schema = {
  ...record({
    content: string,
    tokens: list(whole),
    stop: yes,
    stop_type: choice("eos", "word", "limit", "none"),
    tokens_predicted: whole,
    tokens_evaluated: whole,
  }),
  additionalProperties: true,
};
const nativeAnswer = oneOf(oneAnswer, list(oneAnswer));

export function nativeCompletionRoutes(context: RouteContext): Route[] {
  const { contextSize } = context.services.model;
  const infill = new Infill(context.services);
  return [
    nativeRoute(
      context,
      {
        at: "POST /completion",
        summary: "A text continued, in llama-server's format.",
        request: nativeCompletionFields,
      },
      parseNativeCompletion,
    ),
    nativeRoute(
      context,
      {
        at: "POST /infill",
        summary:
          "What stands between two texts, in llama-server's format, by a model trained for it.",
        request: infillFields,
        example: { input_prefix: "def add(a, b):\n    return ", input_suffix: "\n" },
      },
      async (body, limits, warn) => {
        const { gap, request } = parseInfill(body, limits, warn);
        const prompt = await infill.prompt(gap, contextSize, request.maxTokens);
        return { ...request, prompts: [[prompt]] };
      },
    ),
  ];
}

function nativeRoute(
  context: RouteContext,
  told: Pick<Route, "at" | "summary" | "request" | "example">,
  read: ReadRequest,
): Route {
  const { services, config, active, warnings } = context;
  const { engine, model } = services;
  return {
    ...told,
    streams: true,
    answer: nativeAnswer,
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const sampling = { ...config.sampling, seed: drawSeed(), logitBias: [] };
      const body = await read(request.body, { ...model, sampling }, warnings.warn);
      warnOfModel(body.model, context);
      const { document, closeAtLimit, stop, maxTokens, topLogprobs, postSampling } = body;
      const owner = request.owner;
      const options = {
        grammar: document && (await compileText(document, engine)),
        closeAtLimit,
        stop,
        maxTokens,
        topLogprobs,
        owner,
        cacheSalt: body.cacheSalt,
        postSampling,
      };
      const traced = { ...answerOf(request), model: model.id, owner, startedAt };
      const prompts = await Promise.all(
        body.prompts.map((pieces) => tokenizePrompt(pieces, engine)),
      );
      const choices = textChoices(prompts, body, context, startedAt, (prompt) =>
        engine.detokenize(prompt),
      );
      const run = (choice: number, signal: AbortSignal, sink: Sink<RunEvent>): Promise<void> => {
        const { sampling: drawnBy, times, record } = choices[choice]!;
        const asked = { ...options, prompt: record.prompt, sampling: drawnBy, signal };
        const { lineLimits } = body;
        return context.traces.record(traced, (trace) =>
          runText(engine, asked, { times, trace, record, lineLimits, tellsAtOnce: true }, sink),
        );
      };
      // A stream tells one answer after the other.
      const turns = new Turns();
      const inTurn: typeof run = (choice, signal, sink) =>
        turns.take(() => {
          signal.throwIfAborted();
          return run(choice, signal, sink);
        });
      const start = body.stream ? inTurn : run;
      const events = runChoices(choices.length, start, active.signalFor(reply));
      const shape = { ...body, choices, model: model.id, contextSize: model.contextSize };
      if (body.stream) {
        const stream = new NativeCompletionStream(shape);
        await streamAnswer(events, stream, { request, reply, config });
        return reply;
      }
      const answers = await collectChoices(events, choices.length);
      const wire = answers.map((answer, index) => wireNativeCompletion(answer, index, shape));
      return body.isList ? wire : wire[0];
    },
  };
}
