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
import { type ToolEnd, runToolRound } from "./tool-round.ts";
import type { Tool, ToolEvent, ToolLogger } from "./types.ts";

export interface ToolLoopOptions {
  /** Rounds of calls that are run. Default 16. */
  maxRounds?: number | undefined;
  /** Tools in the prompt. Default: those that are run. */
  offered?: readonly ToolDefinition[] | undefined;
  /** A call that is not run here: after its round's other calls the generation ends with it. */
  handsOver?: ((call: ToolCall) => boolean) | undefined;
  /** Calls that are run; the model is told that the rest are not. Default: as many as it likes. */
  maxCalls?: number | undefined;
  /** For each call. Default 60 s. */
  toolTimeoutMs?: number | undefined;
  logger?: ToolLogger | undefined;
  /** Called once a call, when it ended. */
  onToolCall?: ((end: ToolEnd) => void) | undefined;
}

/** What the loop needs of `Chat`. */
export interface ToolLoopChat {
  generate(request: ChatRequest): ChatGeneration;
}

/**
 * Runs `request` with `tools` in the prompt. Yields the chat's events (a `hold` marks the end of a
 * round that is run) and the tools' own. Ends with `finish`, for `tool_calls` only if calls are handed
 * over. Leaving the loop early cancels the generation and the tools.
 */
export async function* runToolLoop(
  chat: ToolLoopChat,
  request: Omit<ChatRequest, "tools" | "toolMode">,
  tools: readonly Tool[],
  options: ToolLoopOptions = {},
): AsyncGenerator<ChatEvent | ToolEvent, void, void> {
  const maxRounds = options.maxRounds ?? 16;
  const abort = new AbortController();
  const signal =
    request.signal === undefined ? abort.signal : AbortSignal.any([request.signal, abort.signal]);
  const offered = [...(options.offered ?? tools.map((tool) => tool.definition))];
  const generation = chat.generate({ ...request, tools: offered, toolMode: "internal" });
  const handsOver = options.handsOver ?? (() => false);
  const repeats = new RepeatGuard();
  let rounds = 0;
  let callCount = 0;
  try {
    for await (const event of generation) {
      if (rounds > maxRounds) {
        // Of a round beyond the last nothing follows its calls, which are not run.
        if (event.type === "finish") yield { ...event, reason: "stop", calls: [] };
        continue;
      }
      if (event.type !== "hold") {
        yield event;
        continue;
      }
      rounds += 1;
      if (rounds > maxRounds) {
        const calls = event.calls.map((call) => call.name);
        options.logger?.warn(
          { maxRounds, calls },
          "the model calls tools beyond the last round: not run",
        );
        generation.cancel();
        continue;
      }
      yield event;
      const own = event.calls.filter((call) => !handsOver(call));
      const room = Math.max(0, (options.maxCalls ?? Infinity) - callCount);
      callCount += own.length;
      const turn = { calls: own, finishReason: "tool_calls" };
      const refusal = repeats.refuse(event.calls);
      if (refusal !== undefined) options.logger?.warn({ rounds }, "the model repeats itself");
      const limits = { ...options, room, refusal, signal };
      const outputs = own.length === 0 ? [] : yield* runToolRound(turn, tools, limits);
      if (signal.aborted) continue;
      if (outputs === null || own.length < event.calls.length) generation.release();
      else await generation.resume(rounds < maxRounds ? outputs : sayLastRound(outputs, maxRounds));
    }
  } finally {
    abort.abort();
  }
}

function sayLastRound(outputs: ToolOutput[], maxRounds: number): ToolOutput[] {
  const notice = `[The limit of ${maxRounds} rounds of tool calls is reached. No more tools can be called: answer now with what you have.]`;
  return outputs.map((output, index) =>
    index < outputs.length - 1 ? output : { ...output, content: `${output.content}\n\n${notice}` },
  );
}
