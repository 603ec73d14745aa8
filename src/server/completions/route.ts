/** POST /v1/completions */

import type { Route } from "../route.ts";
import { answer } from "../body/shapes.ts";
import { collectChoices, drawSeed, runChoices } from "../answer/choices.ts";
import type { PromptInput } from "../body/prompt-inputs.ts";
import type { RouteContext } from "../context.ts";
import { finishInTurns } from "../../parts.ts";
import { compileText } from "../../chat/answer/text-grammar.ts";
import type { Sink } from "../../tools/event-stream.ts";
import type { RunEvent } from "../../tools/types.ts";
import { runText } from "../answer/text-run.ts";
import { answerOf } from "../answer/traces.ts";
import { TextCompletionStream, wireTextCompletion, textCompletion } from "./completion.ts";
import { parseCompletionRequest, completionFields } from "./fields.ts";
import { textChoices } from "./text-choices.ts";
import { Infill } from "../answer/infill.ts";
import { newIdentity, timings } from "../answer/completion-parts.ts";
import { tokenizePrompt } from "../answer/tokenize-prompt.ts";
import type { ServerServices } from "../services.ts";
import { streamAnswer } from "../http/stream-answer.ts";
import { refuseAgent, warnOfModel } from "../answer/target.ts";

export function completionsRoute(context: RouteContext): Route {
  const { services, config, active, warnings } = context;
  const { engine, model } = services;
  const infill = new Infill(services);
  return {
    at: "POST /v1/completions",
    summary: "A text continued, in OpenAI's legacy Completions format.",
    request: completionFields,
    streams: true,
    answer: answer(textCompletion, { timings }),
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const sampling = { ...config.sampling, seed: drawSeed(), logitBias: [] };
      const body = await finishInTurns(
        parseCompletionRequest(request.body, { ...model, sampling }, warnings.warn),
      );
      refuseAgent(body.model, services, "/v1/chat/completions");
      warnOfModel(body.model, context);
      const signal = active.signalFor(reply);
      const { n, echo, maxTokens, stop, topLogprobs } = body;
      const { document, closeAtLimit, lineLimits } = body;
      const grammar = document && (await compileText(document, engine));
      const { suffix } = body;
      const tokensOf = (prompt: PromptInput): Promise<Int32Array> =>
        suffix === undefined || typeof prompt !== "string"
          ? tokenizePrompt([prompt], engine, body.beginsText)
          : infill.prompt({ prefix: prompt, suffix }, model.contextSize, maxTokens);
      const { contextSize } = model;
      const prompts = (await Promise.all(body.prompts.map(tokensOf))).map((tokens) =>
        truncated(tokens, body.truncation, contextSize - Math.max(1, maxTokens ?? 1)),
      );
      const choices = textChoices(prompts, body, context, startedAt, (tokens, index) =>
        echo ? promptText(body, index, tokens, engine) : "",
      );
      const owner = request.owner;
      const identity = newIdentity("cmpl", model.id, model);
      const traced = { ...answerOf(request, identity.id), model: model.id, owner, startedAt };
      // Those of an echoed prompt stand before the answer's.
      const { promptLogprobs: wished } = body.tokens;
      const promptLogprobs =
        echo && topLogprobs !== undefined ? Math.max(topLogprobs, wished ?? 0) : wished;
      const start = (choice: number, ended: AbortSignal, sink: Sink<RunEvent>) => {
        const { sampling: drawnBy, times, record } = choices[choice]!;
        const asked = {
          prompt: record.prompt,
          sampling: drawnBy,
          maxTokens,
          stop,
          topLogprobs,
          promptLogprobs,
          onPromptLogprobs: record.listeners.onPromptLogprobs,
          spelledTokens: body.spellsControlTokens ? controlTokens(engine) : undefined,
          grammar,
          closeAtLimit,
          owner,
          cacheSalt: body.cacheSalt,
          signal: ended,
        };
        return context.traces.record(traced, (trace) =>
          runText(engine, asked, { times, trace, record, lineLimits }, sink),
        );
      };
      const events = runChoices(choices.length, start, signal);
      const shape = {
        choices,
        n,
        withLogprobs: topLogprobs !== undefined,
        usage: body.usage,
        tokens: body.tokens,
        echoes: echo,
        model: engine.model,
        tokenBytes: (token: number) => engine.tokenBytes(token),
        times: body.times,
      };
      if (!body.stream)
        return wireTextCompletion(identity, await collectChoices(events, choices.length), shape);
      const stream = new TextCompletionStream(identity, shape);
      await streamAnswer(events, stream, { request, reply, config });
      return reply;
    },
  };
}

/** @param room tokens of a prompt that leave room for the answer */
function truncated(
  tokens: Int32Array,
  truncation: { length: number; side: "left" | "right" } | undefined,
  room: number,
): Int32Array {
  if (truncation === undefined) return tokens;
  const length = Math.max(1, truncation.length < 0 ? room : truncation.length);
  if (tokens.length <= length) return tokens;
  return truncation.side === "left" ? tokens.slice(-length) : tokens.slice(0, length);
}

/** But the one that ends a text, which is no part of it. */
function controlTokens({ model }: ServerServices["engine"]): Int32Array {
  const control = model.specialTokens.filter(
    ({ kind, text }) => kind === "control" && text !== model.eosToken,
  );
  return Int32Array.from(control, ({ id }) => id);
}

function promptText(
  { prompts, truncation }: { prompts: readonly PromptInput[]; truncation: object | undefined },
  index: number,
  tokens: Int32Array,
  engine: ServerServices["engine"],
): string {
  const prompt = prompts[index];
  const isWhole = typeof prompt === "string" && truncation === undefined;
  return isWhole ? prompt : engine.detokenize(tokens);
}
