/** One turn's calls, run side by side. */

import type { ToolCall, ToolOutput } from "../chat/types.ts";
import { ToolCallBuffer } from "./tool-call-buffer.ts";
import { type ToolRun, findTool, runTool } from "./tool-run.ts";
import type { Tool, ToolEvent, ToolLogger, ToolReport } from "./types.ts";

export type ToolEnd = Extract<ToolEvent, { type: "tool-end" }>;

export interface ToolRoundOptions {
  signal: AbortSignal;
  /** For each call. Default 60 s. */
  toolTimeoutMs?: number | undefined;
  /** Of `maxCalls` in all, those that may still be run; the model is told that the rest are not. */
  room?: number | undefined;
  maxCalls?: number | undefined;
  /** No call is run; this is each one's result. */
  refusal?: string | undefined;
  logger?: ToolLogger | undefined;
  /** Called once a call, when it ended. */
  onToolCall?: ((end: ToolEnd) => void) | undefined;
}

/** A turn with calls: of Fermata's own generation, or of another server's response. */
export interface CallingTurn {
  calls: readonly ToolCall[];
  /** Any server's; null when there is none. */
  finishReason: string | null;
}

/** Server of a call that names no tool. */
const UNKNOWN_SERVER = "unknown";

/**
 * Reports and ends are told in the order they come; outputs are in the order of the calls.
 * @returns null when nothing is run: there are no calls, or the turn was cut inside of one
 */
export async function* runToolRound(
  { calls, finishReason }: CallingTurn,
  tools: readonly Tool[],
  options: ToolRoundOptions,
): AsyncGenerator<ToolEvent, ToolOutput[] | null, void> {
  const buffer = new ToolCallBuffer(finishReason, options.logger);
  for (const call of calls) buffer.addToolCall(call);
  if (!buffer.shouldExecuteToolCalls()) return null;

  const told: ToolEvent[] = [];
  let wake = (): void => {};
  const tell = (event: ToolEvent): void => {
    told.push(event);
    wake();
  };
  const outputs = calls.map(async (call, index): Promise<ToolOutput> => {
    const server = serverOf(call, tools);
    const report = (it: ToolReport): void =>
      tell({ type: "tool-report", call, server, report: it });
    const run = await runOne(call, index, tools, { ...options, report });
    const end: ToolEnd = { type: "tool-end", call, server, ...run };
    options.onToolCall?.(end);
    tell(end);
    return { callId: call.id, name: call.name, content: run.content };
  });
  for (const call of calls) yield { type: "tool-start", call, server: serverOf(call, tools) };
  for (let running = calls.length; running > 0;) {
    const event = told.shift();
    if (event === undefined) {
      await new Promise<void>((resolve) => (wake = resolve));
      continue;
    }
    if (event.type === "tool-end") running -= 1;
    yield event;
  }
  return await Promise.all(outputs);
}

async function runOne(
  call: ToolCall,
  index: number,
  tools: readonly Tool[],
  options: ToolRoundOptions & { report: (report: ToolReport) => void },
): Promise<ToolRun> {
  const { room = Infinity, maxCalls, refusal, toolTimeoutMs: timeoutMs = 60_000 } = options;
  const { signal, report } = options;
  if (refusal !== undefined) return notRun(refusal);
  if (index < room) return await runTool(call, tools, { timeoutMs, signal, report });
  return notRun(
    `Error: not run: the limit of ${maxCalls} tool calls is reached. Answer now with what you have.`,
  );
}

function serverOf(call: ToolCall, tools: readonly Tool[]): string {
  return findTool(call, tools)?.server ?? UNKNOWN_SERVER;
}

function notRun(content: string): ToolRun {
  return { outcome: "error", content, citations: [], milliseconds: 0 };
}
