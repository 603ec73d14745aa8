/** Runs the calls of one turn in parallel. Calls that change nothing may start before the turn ends. */

import { setMaxListeners } from "node:events";
import { ToolCallBuffer } from "../chat/answer/tool-call-buffer.ts";
import type { ToolCall, ToolLogger, ToolOutput } from "../chat/types.ts";
import { EventQueue, pulled, type Sink } from "./event-stream.ts";
import type { Deadline } from "./loop-budget.ts";
import type { ApprovalState, AskedAbout, ToolOversight } from "./oversight.ts";
import { findTool, runTool, unknownServer } from "./tool-run.ts";
import type { Tool, ToolCallContext, ToolEvent, ToolReport } from "./types.ts";

export type ToolEnd = Extract<ToolEvent, { type: "tool-end" }>;

export interface ToolRunsOptions {
  signal: AbortSignal;
  /** How long a call may be silent. Default 60 s. */
  toolTimeoutMs?: number | undefined;
  /** How long a call may take in all. Default ten minutes. */
  toolTotalTimeoutMs?: number | undefined;
  /** When all calls must end. Default: never. */
  deadline?: Deadline | undefined;
  /** Default: calls that need approval do not run, and nothing is recorded. */
  oversight?: ToolOversight | undefined;
  /** Asks the model of the request for a call's server. Default: it cannot be asked. */
  sample?: ToolCallContext["sample"];
  /** Called once per call, when it has ended. */
  onToolCall?: ((end: ToolEnd) => void) | undefined;
  /** Called with the output of a call: first its beginning, then all of it. */
  onOutput?: ((output: ToolOutput, isWhole: boolean) => void) | undefined;
}

export interface ToolRoundLimits {
  /** How many calls may still run. The model reads that the others were not run. */
  room?: number | undefined;
  maxCalls?: number | undefined;
  /** No call runs; this is the result of each. */
  refusal?: string | undefined;
}

export type ToolRoundOptions = ToolRunsOptions &
  ToolRoundLimits & { logger?: ToolLogger | undefined };

/** A turn with calls. */
export interface CallingTurn {
  calls: readonly ToolCall[];
  /** Any server's; null when there is none. */
  finishReason: string | null;
}

/**
 * Reports and ends are passed on as they come; the outputs are in the order of the calls.
 * @returns null when nothing is run: there are no calls, or the turn was cut inside of one
 */
export async function* runToolRound(
  turn: CallingTurn,
  tools: readonly Tool[],
  options: ToolRoundOptions,
): AsyncGenerator<ToolEvent, ToolOutput[] | null, void> {
  const buffer = new ToolCallBuffer(turn.finishReason, options.logger);
  for (const call of turn.calls) buffer.addToolCall(call);
  if (!buffer.shouldExecuteToolCalls()) return null;
  return yield* pulled((sink) => {
    const told = new EventQueue<ToolEvent>();
    const round = new ToolRound(tools, { ...options, tell: told.push });
    return told.drain(round.finish(turn.calls, options), sink);
  });
}

/** Use an instance once: any number of `startEarly`, then `finish` or `cancel`. */
export class ToolRound {
  readonly #tools: readonly Tool[];
  readonly #options: ToolRunsOptions & { tell: Sink<ToolEvent> };
  readonly #abort = new AbortController();
  readonly #signal: AbortSignal;
  /** By call id. */
  readonly #early = new Map<string, Promise<ToolOutput>>();
  /** Ends of early calls, which are reported after the turn has ended. */
  readonly #kept: ToolEnd[] = [];
  #isOver = false;

  /** @param options `tell` is called at any time until the round has ended */
  constructor(tools: readonly Tool[], options: ToolRunsOptions & { tell: Sink<ToolEvent> }) {
    this.#tools = tools;
    this.#options = options;
    this.#signal = AbortSignal.any([options.signal, this.#abort.signal]);
    // One for each call, however many there are.
    setMaxListeners(0, this.#signal);
  }

  /** Starts a complete call before the turn has ended. The caller has checked that it may start. */
  startEarly(call: ToolCall): void {
    this.#early.set(call.id, this.#start(call));
  }

  /** The turn has ended: runs the calls that have not started yet. */
  async finish(calls: readonly ToolCall[], limits: ToolRoundLimits): Promise<ToolOutput[]> {
    const outputs = calls.map(
      (call, index) => this.#early.get(call.id) ?? this.#start(call, refusalOf(index, limits)),
    );
    this.#tellKept();
    return await Promise.all(outputs);
  }

  /** The turn's calls must not run: cancels the early calls and drops their results. */
  async cancel(): Promise<void> {
    this.#abort.abort();
    this.#tellKept();
    await Promise.all(this.#early.values());
  }

  #tellKept(): void {
    this.#isOver = true;
    for (const end of this.#kept.splice(0)) void this.#options.tell(end);
  }

  #start(call: ToolCall, refusal?: string): Promise<ToolOutput> {
    const tool = findTool(call, this.#tools);
    const server = tool?.server ?? unknownServer;
    void this.#options.tell({ type: "tool-start", call, server });
    return this.#run(call, { server, hasChanged: tool?.hasChanged ?? false }, refusal);
  }

  async #run(
    call: ToolCall,
    { server, hasChanged }: { server: string; hasChanged: boolean },
    refusal?: string,
  ): Promise<ToolOutput> {
    const { toolTimeoutMs: timeoutMs = 60_000, tell, onToolCall, onOutput } = this.#options;
    const { toolTotalTimeoutMs: totalTimeoutMs, deadline, oversight, sample } = this.#options;
    const output: ToolOutput = { callId: call.id, name: call.name, content: "" };
    const report = async (it: ToolReport): Promise<void> => {
      const told = tell({ type: "tool-report", call, server, report: it });
      if (it.type === "output") {
        output.content += it.text;
        onOutput?.({ ...output }, false);
      }
      await told;
    };
    const run =
      refusal === undefined
        ? await runTool(call, this.#tools, {
            timeoutMs,
            totalTimeoutMs,
            deadline,
            signal: this.#signal,
            report,
            oversight,
            sample,
            onApproval: (state: ApprovalState, about: AskedAbout = {}) =>
              void tell({ type: "tool-approval", call, server, state, hasChanged, ...about }),
          })
        : { outcome: "error" as const, content: refusal, citations: [], milliseconds: 0 };
    const end: ToolEnd = { type: "tool-end", call, server, ...run };
    onToolCall?.(end);
    if (this.#isOver) void tell(end);
    else this.#kept.push(end);
    output.content = run.content;
    if (!this.#signal.aborted) onOutput?.(output, true);
    return output;
  }
}

function refusalOf(
  index: number,
  { room = Infinity, maxCalls, refusal }: ToolRoundLimits,
): string | undefined {
  if (refusal !== undefined || index < room) return refusal;
  return `Error: not run: the limit of ${maxCalls} tool calls is reached.`;
}
