/** Internal mode: hold, run the calls, resume, until the model answers. */

import type { Logger } from "../chat/chat-engine.ts";
import type {
  ChatEvent,
  ChatGeneration,
  ChatRequest,
  ToolCall,
  ToolDefinition,
  ToolOutput,
} from "../chat/types.ts";
import { type ToolOutcome, type ToolRun, findTool, runTool } from "./tool-run.ts";
import type { Tool } from "./types.ts";

export type ToolEvent =
  | { type: "tool-start"; call: ToolCall; server: string }
  | {
      type: "tool-end";
      call: ToolCall;
      server: string;
      outcome: ToolOutcome;
      /** What the model reads of it. */
      content: string;
      milliseconds: number;
    };

type ToolEnd = Extract<ToolEvent, { type: "tool-end" }>;

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
  logger?: Logger | undefined;
  /** Called once a call, when it ended. */
  onToolCall?: ((end: ToolEnd) => void) | undefined;
}

/** What the loop needs of `Chat`. */
export interface ToolLoopChat {
  generate(request: ChatRequest): ChatGeneration;
}

/** Server of a call that names no tool. */
const UNKNOWN_SERVER = "unknown";

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
      const outputs = yield* runRound(own, { tools, room, signal, options });
      if (signal.aborted) continue;
      if (own.length < event.calls.length) generation.release();
      else await generation.resume(rounds < maxRounds ? outputs : sayLastRound(outputs, maxRounds));
    }
  } finally {
    abort.abort();
  }
}

interface RoundContext {
  tools: readonly Tool[];
  /** Calls that may be run. */
  room: number;
  signal: AbortSignal;
  options: ToolLoopOptions;
}

/** Side by side. Ends are told in the order they come; outputs are in the order of the calls. */
async function* runRound(
  calls: readonly ToolCall[],
  { tools, room, signal, options }: RoundContext,
): AsyncGenerator<ToolEvent, ToolOutput[], void> {
  const ends: ToolEnd[] = [];
  let wake = (): void => {};
  const outputs = calls.map(async (call, index): Promise<ToolOutput> => {
    const timeoutMs = options.toolTimeoutMs ?? 60_000;
    const run =
      index < room ? await runTool(call, tools, { timeoutMs, signal }) : notRun(options.maxCalls);
    const { outcome, content, milliseconds } = run;
    const end: ToolEnd = {
      type: "tool-end",
      call,
      server: serverOf(call, tools),
      outcome,
      content,
      milliseconds,
    };
    options.onToolCall?.(end);
    ends.push(end);
    wake();
    return { callId: call.id, name: call.name, content };
  });
  for (const call of calls) yield { type: "tool-start", call, server: serverOf(call, tools) };
  for (let told = 0; told < calls.length; told++) {
    if (ends.length <= told) await new Promise<void>((resolve) => (wake = resolve));
    const end = ends[told];
    if (end !== undefined) yield end;
  }
  return await Promise.all(outputs);
}

function serverOf(call: ToolCall, tools: readonly Tool[]): string {
  return findTool(call, tools)?.server ?? UNKNOWN_SERVER;
}

function notRun(maxCalls: number | undefined): ToolRun {
  const content = `Error: not run: the limit of ${maxCalls} tool calls is reached. Answer now with what you have.`;
  return { outcome: "error", content, milliseconds: 0 };
}

function sayLastRound(outputs: ToolOutput[], maxRounds: number): ToolOutput[] {
  const notice = `[The limit of ${maxRounds} rounds of tool calls is reached. No more tools can be called: answer now with what you have.]`;
  return outputs.map((output, index) =>
    index < outputs.length - 1 ? output : { ...output, content: `${output.content}\n\n${notice}` },
  );
}
