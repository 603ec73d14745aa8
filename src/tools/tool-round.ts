/** One turn's calls, run side by side; those that change nothing may start while the turn goes on. */

import { setMaxListeners } from "node:events";
import { ToolCallBuffer } from "../chat/answer/tool-call-buffer.ts";
import type { ToolCall, ToolLogger, ToolOutput } from "../chat/types.ts";
import { EventQueue, pulled } from "./event-stream.ts";
import type { Deadline } from "./loop-budget.ts";
import type { ApprovalState, ToolOversight } from "./oversight.ts";
import { findTool, runTool, unknownServer } from "./tool-run.ts";
import type { Tool, ToolEvent, ToolReport } from "./types.ts";

export type ToolEnd = Extract<ToolEvent, { type: "tool-end" }>;

export interface ToolRunsOptions {
  signal: AbortSignal;
  /** For each call, without a sign of life. Default 60 s. */
  toolTimeoutMs?: number | undefined;
  /** For each call, whatever it reports. Default ten minutes. */
  toolTotalTimeoutMs?: number | undefined;
  /** When all calls are to end. Default: never. */
  deadline?: Deadline | undefined;
  /** Default: what needs an approval is not run, nothing is recorded. */
  oversight?: ToolOversight | undefined;
  /** Called once a call, when it ended. */
  onToolCall?: ((end: ToolEnd) => void) | undefined;
  /** Called with what is known of a call's output: its beginning, then all of it. */
  onOutput?: ((output: ToolOutput, isWhole: boolean) => void) | undefined;
}

export interface ToolRoundLimits {
  /** Of `maxCalls` in all, those that may still be run; the model is told that the rest are not. */
  room?: number | undefined;
  maxCalls?: number | undefined;
  /** No call is run; this is each one's result. */
  refusal?: string | undefined;
}

export type ToolRoundOptions = ToolRunsOptions &
  ToolRoundLimits & { logger?: ToolLogger | undefined };

/** A turn with calls, of any server's response. */
export interface CallingTurn {
  calls: readonly ToolCall[];
  /** Any server's; null when there is none. */
  finishReason: string | null;
}

/**
 * Reports and ends are told in the order they come; outputs are in the order of the calls.
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

/** Used once: any number of `startEarly`, then `finish` or `cancel`. */
export class ToolRound {
  readonly #tools: readonly Tool[];
  readonly #options: ToolRunsOptions & { tell(event: ToolEvent): void };
  readonly #abort = new AbortController();
  readonly #signal: AbortSignal;
  /** By call id. */
  readonly #early = new Map<string, Promise<ToolOutput>>();
  /** Ends of early calls: of a turn that goes on nothing is over. */
  readonly #kept: ToolEnd[] = [];
  #isOver = false;

  /** @param options `tell` is called at any time until the round has ended */
  constructor(tools: readonly Tool[], options: ToolRunsOptions & { tell(event: ToolEvent): void }) {
    this.#tools = tools;
    this.#options = options;
    this.#signal = AbortSignal.any([options.signal, this.#abort.signal]);
    // One for each call, however many there are.
    setMaxListeners(0, this.#signal);
  }

  /** Starts a complete call of a turn that goes on; whether it may is the caller's to judge. */
  startEarly(call: ToolCall): void {
    this.#early.set(call.id, this.#start(call));
  }

  /** The turn is over, and its calls are to be run: runs those that have not been started. */
  async finish(calls: readonly ToolCall[], limits: ToolRoundLimits): Promise<ToolOutput[]> {
    const outputs = calls.map(
      (call, index) => this.#early.get(call.id) ?? this.#start(call, refusalOf(index, limits)),
    );
    this.#tellKept();
    return await Promise.all(outputs);
  }

  /** The turn did not become a round of calls: what was started early ends, and its results count for nothing. */
  async cancel(): Promise<void> {
    this.#abort.abort();
    this.#tellKept();
    await Promise.all(this.#early.values());
  }

  #tellKept(): void {
    this.#isOver = true;
    for (const end of this.#kept.splice(0)) this.#options.tell(end);
  }

  #start(call: ToolCall, refusal?: string): Promise<ToolOutput> {
    const server = findTool(call, this.#tools)?.server ?? unknownServer;
    this.#options.tell({ type: "tool-start", call, server });
    return this.#run(call, server, refusal);
  }

  async #run(call: ToolCall, server: string, refusal?: string): Promise<ToolOutput> {
    const { toolTimeoutMs: timeoutMs = 60_000, tell, onToolCall, onOutput } = this.#options;
    const { toolTotalTimeoutMs: totalTimeoutMs, deadline, oversight } = this.#options;
    const output: ToolOutput = { callId: call.id, name: call.name, content: "" };
    const report = (it: ToolReport): void => {
      tell({ type: "tool-report", call, server, report: it });
      if (it.type !== "output") return;
      output.content += it.text;
      onOutput?.({ ...output }, false);
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
            onApproval: (state: ApprovalState) =>
              tell({ type: "tool-approval", call, server, state }),
          })
        : { outcome: "error" as const, content: refusal, citations: [], milliseconds: 0 };
    const end: ToolEnd = { type: "tool-end", call, server, ...run };
    onToolCall?.(end);
    if (this.#isOver) tell(end);
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
