/** Internal mode: hold, run the calls, resume, until the model answers. */

import type {
  ChatEvent,
  ChatGeneration,
  ChatRequest,
  ToolCall,
  ToolDefinition,
  ToolOutput,
} from "../chat/types.ts";
import { RepeatGuard } from "./repeat-guard.ts";
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
  const { maxRounds = 16, maxCalls = Infinity, handsOver = () => false, logger } = options;
  const abort = new AbortController();
  const signal =
    request.signal === undefined ? abort.signal : AbortSignal.any([request.signal, abort.signal]);
  const offered = [...(options.offered ?? tools.map((tool) => tool.definition))];
  const generation = chat.generate({ ...request, tools: offered, toolMode: "internal" });
  const isOwn = (call: ToolCall): boolean => !handsOver(call);
  const repeats = new RepeatGuard();
  /** Of the round that is written or run. */
  let number = 1;
  const nextRound = (): ToolRound => new ToolRound(tools, { ...options, signal });
  let round = nextRound();
  let closed: ToolCall[] = [];
  let isSpent = false;
  let callCount = 0;
  const startsEarly = (call: ToolCall): boolean =>
    findTool(call, tools)?.readOnly === true &&
    isOwn(call) &&
    number <= maxRounds &&
    callCount + closed.filter(isOwn).length <= maxCalls &&
    !repeats.mayRefuse(closed);
  try {
    for await (const event of withEarlyEvents(generation, () => round)) {
      if (isSpent) {
        // Of a round beyond the last nothing follows its calls, which are not run.
        if (event.type === "finish") yield { ...event, reason: "stop", calls: [] };
        continue;
      }
      if (event.type === "call-end") {
        closed.push(event.call);
        if (startsEarly(event.call)) round.startEarly(event.call);
      }
      if (event.type === "finish") yield* round.cancel();
      if (event.type !== "hold") {
        yield event;
        continue;
      }
      if (number > maxRounds) {
        const calls = event.calls.map((call) => call.name);
        logger?.warn({ maxRounds, calls }, "the model calls tools beyond the last round: not run");
        isSpent = true;
        generation.cancel();
        continue;
      }
      yield event;
      const own = event.calls.filter(isOwn);
      const room = Math.max(0, maxCalls - callCount);
      callCount += own.length;
      const refusal = repeats.refuse(event.calls);
      if (refusal !== undefined) logger?.warn({ rounds: number }, "the model repeats itself");
      const turn = { calls: own, finishReason: "tool_calls" };
      const limits = { room, maxCalls: options.maxCalls, refusal };
      const outputs = own.length === 0 ? [] : yield* round.finish(turn, limits);
      if (signal.aborted) continue;
      if (outputs === null || own.length < event.calls.length) generation.release();
      else await generation.resume(number < maxRounds ? outputs : sayLastRound(outputs, maxRounds));
      number += 1;
      round = nextRound();
      closed = [];
    }
  } finally {
    abort.abort();
  }
}

/** The chat's events and, between them, what the calls tell that run already. */
async function* withEarlyEvents(
  generation: ChatGeneration,
  current: () => ToolRound,
): AsyncGenerator<ChatEvent | ToolEvent, void, void> {
  const events = generation[Symbol.asyncIterator]();
  let isWaiting = false;
  try {
    for (;;) {
      const next = events.next();
      isWaiting = true;
      yield* current().eventsUntil(next);
      isWaiting = false;
      const result = await next;
      if (result.done === true) return;
      yield result.value;
    }
  } finally {
    // It is left only when it has its next event: the one that a cancel brings about.
    if (isWaiting) generation.cancel();
    await events.return?.();
  }
}

function sayLastRound(outputs: ToolOutput[], maxRounds: number): ToolOutput[] {
  const notice = `[The limit of ${maxRounds} rounds of tool calls is reached. No more tools can be called: answer now with what you have.]`;
  return outputs.map((output, index) =>
    index < outputs.length - 1 ? output : { ...output, content: `${output.content}\n\n${notice}` },
  );
}
