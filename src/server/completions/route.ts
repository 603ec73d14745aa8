/** POST /v1/completions */

import type { RouteOptions } from "fastify";
import { collectChoices, drawSeed, runChoices, withSeed } from "../answer/choices.ts";
import type { PromptInput } from "../body/prompt-inputs.ts";
import type { RouteContext } from "../context.ts";
import { finishInTurns } from "../../parts.ts";
import { compileText } from "../../chat/answer/text-grammar.ts";
import type { Sink } from "../../tools/event-stream.ts";
import type { RunEvent } from "../../tools/types.ts";
import { TokenTimes } from "../answer/token-times.ts";
import { runText } from "../answer/text-run.ts";
import { answerOf } from "../answer/traces.ts";
import { TextCompletionStream, textCompletion } from "./completion.ts";
import { parseCompletionRequestInParts } from "./fields.ts";
import { fieldError } from "../body/field.ts";
import { Infill } from "./infill.ts";
import { newIdentity } from "../answer/completion-parts.ts";
import { promptTokens } from "../answer/prompt-tokens.ts";
import type { ServerServices } from "../services.ts";
import { requestOwner } from "../http/access.ts";
import { streamAnswer } from "../http/stream-answer.ts";
import { warnOfModel } from "../answer/target.ts";

export function completionsRoute(context: RouteContext): RouteOptions {
  const { services, config, metrics, active, warnings } = context;
  const { engine, model } = services;
  const infill = new Infill(services);
  return {
    method: "POST",
    url: "/v1/completions",
    handler: async (request, reply) => {
      const startedAt = performance.now();
      const sampling = { ...config.sampling, seed: drawSeed(), logitBias: [] };
      const body = await finishInTurns(
        parseCompletionRequestInParts(request.body, { ...model, sampling }, warnings.warn),
      );
      refuseAgent(body.model, services);
      warnOfModel(body.model, context);
      const signal = active.signalFor(reply);
      const { n, echo, maxTokens, stop, topLogprobs, includeUsage } = body;
      const { document, closeAtLimit } = body;
      const grammar = document && (await compileText(document, engine));
      const { suffix } = body;
      const tokensOf = (prompt: PromptInput): Promise<Int32Array> =>
        suffix === undefined || typeof prompt !== "string"
          ? promptTokens([prompt], engine)
          : infill.prompt({ prefix: prompt, suffix }, model.contextSize, maxTokens);
      const prompts = await Promise.all(body.prompts.map(tokensOf));
      const count = prompts.length * n;
      const times = Array.from({ length: count }, () => new TokenTimes(metrics, startedAt));
      const owner = requestOwner(request);
      const identity = newIdentity("cmpl", model.id, model);
      const traced = { ...answerOf(request, identity.id), model: model.id, owner, startedAt };
      const start = (choice: number, ended: AbortSignal, sink: Sink<RunEvent>) => {
        const asked = {
          prompt: prompts[Math.floor(choice / n)]!,
          sampling: withSeed(body.sampling, choice % n),
          maxTokens,
          stop,
          topLogprobs,
          grammar,
          closeAtLimit,
          owner,
          cacheSalt: body.cacheSalt,
          signal: ended,
        };
        return context.traces.record(traced, (trace) =>
          runText(engine, asked, { times: times[choice]!, trace }, sink),
        );
      };
      const events = runChoices(count, start, signal);
      const echoes = echo ? body.prompts.map((prompt) => promptText(prompt, engine)) : [];
      const shape = {
        prefixes: Array.from(
          { length: count },
          (_, choice) => echoes[Math.floor(choice / n)] ?? "",
        ),
        n,
        withLogprobs: topLogprobs !== undefined,
        includeUsage,
        timesWanted: body.times,
        times,
      };
      if (!body.stream) return textCompletion(identity, await collectChoices(events, count), shape);
      const stream = new TextCompletionStream(identity, shape);
      await streamAnswer(events, stream, { request, reply, config });
      return reply;
    },
  };
}

/** An agent reads a conversation, and a bare prompt has none. */
function refuseAgent(model: string | undefined, { agents }: ServerServices): void {
  if (model === undefined || agents?.find(model) === undefined) return;
  const remedy = "Send messages to /v1/chat/completions";
  throw fieldError("unsupported_value", "model", "names an agent", remedy);
}

function promptText(prompt: PromptInput, engine: ServerServices["engine"]): string {
  return typeof prompt === "string" ? prompt : engine.detokenize(prompt);
}
