/** Internal mode: hold, run the calls, resume, until the model answers. */

import type { ToolLogger } from "../chat/chat-engine.ts";
import type {
  ChatEvent,
  ChatGeneration,
  ChatRequest,
  ToolCall,
  ToolDefinition,
} from "../chat/types.ts";
import { LoopBudget } from "./loop-budget.ts";
import { ToolRound, type ToolRunsOptions } from "./tool-round.ts";
import { findTool } from "./tool-run.ts";
import type { Tool, ToolEvent } from "./types.ts";

export interface ToolLoopOptions extends Omit<ToolRunsOptions, "signal" | "onOutput"> {
  /** Rounds of calls that are run. Default 16. */
  maxRounds?: number | undefined;
  /** Tools in the prompt. Default: those that are run. */
  offered?: readonly ToolDefinition[] | undefined;
  /** A call that is not run here: after its round's other calls the generation ends with it. */
  handsOver?: ((call: ToolCall) => boolean) | undefined;
  /** Calls that are run; the model is told that the rest are not. Default: as many as it likes. */
  maxCalls?: number | undefined;
  /** Of the whole answer. Calls that run then are stopped, and the model is told. Default: no limit. */
  maxSeconds?: number | undefined;
  /** Is told of turns and of limits, unless the request has its own. */
  logger?: ToolLogger | undefined;
}

/** What the loop needs of `Chat`. */
export interface ToolLoopChat {
  generate(request: ChatRequest): ChatGeneration;
}

/**
 * Runs `request` with `tools` in the prompt. Yields the chat's events (a `hold` marks the end of a
 * round that is run) and the tools' own. A call of a tool that only reads starts when its arguments are
 * complete; it ends, as far as is told, after the hold, and comes to nothing if no hold comes. Ends with
 * `finish`, for `tool_calls` only if calls are handed over. Leaving the loop early cancels the
 * generation and the tools.
 */
export async function* runToolLoop(
  chat: ToolLoopChat,
  request: Omit<ChatRequest, "tools" | "toolMode">,
  tools: readonly Tool[],
  options: ToolLoopOptions = {},
): AsyncGenerator<ChatEvent | ToolEvent, void, void> {
  const { maxRounds = 16, maxCalls = Infinity, maxSeconds = Infinity } = options;
  const { handsOver = () => false, logger } = options;
  const abort = new AbortController();
  const signal =
    request.signal === undefined ? abort.signal : AbortSignal.any([request.signal, abort.signal]);
  const offered = [...(options.offered ?? tools.map((tool) => tool.definition))];
  const generation = chat.generate({
    logger,
    ...request,
    tools: offered,
    toolMode: "internal",
  });
  const isOwn = (call: ToolCall): boolean => !handsOver(call);
  const budget = new LoopBudget({ maxRounds, maxCalls, maxSeconds });
  const { deadline } = budget;
  // A notice may follow the last output, but once that one is whole the resume comes.
  const onOutput = generation.anticipate.bind(generation);
  const oversight = options.oversight && { denials: new Set<string>(), ...options.oversight };
  const nextRound = (): ToolRound =>
    new ToolRound(tools, { ...options, oversight, signal, deadline, onOutput });
  let round = nextRound();
  let closed: ToolCall[] = [];
  /** What the client runs may be called beyond the limits. */
  const callable = offered
    .map(({ name }) => name)
    .filter((name) => handsOver({ id: "", name, arguments: "" }));
  let isCut = false;
  let hasText = false;
  const hasForm = request.guidance?.document !== undefined;
  const startsEarly = (call: ToolCall): boolean => {
    const { readOnly = false, approval = "never" } = findTool(call, tools) ?? {};
    // A person is asked when the round is known.
    const mayBeEarly = readOnly && approval === "never" && isOwn(call);
    return mayBeEarly && budget.mayStart(closed, closed.filter(isOwn).length);
  };
  const events = generation[Symbol.asyncIterator]();
  /** The generation's next event, while early calls tell theirs. */
  let pending: Promise<IteratorResult<ChatEvent>> | null = null;
  try {
    for (;;) {
      pending ??= events.next();
      const early = await round.nextBefore(pending);
      if (early !== null) {
        yield early;
        continue;
      }
      const step = pending;
      pending = null;
      const next = await step;
      if (next.done === true) return;
      const event = next.value;
      if (isCut && event.type !== "finish") continue;
      if (event.type === "content") hasText ||= event.text.trim() !== "";
      if (event.type === "call-end") {
        closed.push(event.call);
        if (startsEarly(event.call)) round.startEarly(event.call);
      }
      if (event.type === "finish") {
        yield* round.cancel();
        const isAborted = event.reason === "cancelled" && !isCut;
        if (budget.reached === null || isAborted) yield event;
        else yield* finishAtLimit(event, { limit: budget.reached, isCut, hasText, hasForm });
        continue;
      }
      if (event.type !== "hold") {
        yield event;
        continue;
      }
      const own = event.calls.filter(isOwn);
      const names = own.map((call) => call.name);
      if (budget.reached !== null && own.length > 0) {
        // Without masks nothing keeps the model from calling on.
        logger?.warn({ calls: names }, "the model calls tools beyond its limits: not run");
        isCut = true;
        generation.cancel();
        continue;
      }
      const { room, refusal } = budget.judge(event.calls, own.length);
      yield event;
      if (budget.reached !== null)
        logger?.warn(
          { calls: names, why: budget.reached },
          "a limit is reached: the model answers without tools",
        );
      else if (refusal !== undefined) logger?.warn({ why: refusal }, "calls are not run");
      const limits = { room, maxCalls: options.maxCalls, refusal };
      const outputs = own.length === 0 ? [] : yield* round.finish(own, limits);
      if (signal.aborted) continue;
      if (own.length < event.calls.length) generation.release();
      else
        await generation.resume(
          budget.close(outputs),
          budget.reached === null ? undefined : { callable },
        );
      round = nextRound();
      closed = [];
    }
  } finally {
    // The generation is left only when it has its next event: the one that a cancel brings about.
    if (pending !== null) generation.cancel();
    await events.return?.();
    abort.abort();
  }
}

/** An answer after a limit ends with a notice; one of a given form has no place for words of ours. */
function* finishAtLimit(
  finish: Extract<ChatEvent, { type: "finish" }>,
  answer: { limit: string; isCut: boolean; hasText: boolean; hasForm: boolean },
): Generator<ChatEvent, void, void> {
  const notice = `No more tools were called: ${answer.limit} is reached.`;
  const end = { ...finish, warnings: [...(finish.warnings ?? []), notice] };
  if (answer.hasForm) {
    yield answer.isCut ? { ...end, reason: "length", calls: [], problem: notice } : end;
    return;
  }
  if (finish.calls.length === 0)
    yield { type: "content", text: `${answer.hasText ? "\n\n" : ""}[${notice}]` };
  yield answer.isCut ? { ...end, reason: "stop", calls: [] } : end;
}
