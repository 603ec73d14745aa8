/** Runs one call: finds its tool, checks its arguments, bounds its time. Never throws. */

import type { ToolCall } from "../chat/types.ts";
import { nearNames } from "./near-names.ts";
import type { Tool, ToolCallContext, ToolOutcome, ToolReport, ToolResult } from "./types.ts";

export interface ToolRun {
  outcome: ToolOutcome;
  /** For the model. */
  content: string;
  citations: readonly string[];
  milliseconds: number;
}

export interface ToolRunOptions {
  timeoutMs: number;
  signal: AbortSignal;
  /** Until the run ends. */
  report: (report: ToolReport) => void;
}

const MAX_LISTED = 20;

export function findTool(call: ToolCall, tools: readonly Tool[]): Tool | undefined {
  return tools.find((tool) => tool.definition.name === call.name);
}

export async function runTool(
  call: ToolCall,
  tools: readonly Tool[],
  options: ToolRunOptions,
): Promise<ToolRun> {
  const tool = findTool(call, tools);
  if (tool === undefined) return refused(unknownTool(call.name, tools));
  const args = readArguments(call);
  if (typeof args === "string") return refused(args);
  const timeoutMs = tool.timeoutMs ?? options.timeoutMs;
  let ended = false;
  const report = (it: ToolReport): void => {
    if (!ended) options.report(it);
  };
  const start = (signal: AbortSignal): Promise<ToolResult> =>
    callTool(tool, args.value, { callId: call.id, signal, report });
  try {
    return await runBounded(tool, start, { timeoutMs, signal: options.signal });
  } finally {
    ended = true;
  }
}

async function runBounded(
  tool: Tool,
  start: (signal: AbortSignal) => Promise<ToolResult>,
  { timeoutMs, signal }: Pick<ToolRunOptions, "timeoutMs" | "signal">,
): Promise<ToolRun> {
  const started = performance.now();
  const controller = new AbortController();
  // A tool may ignore its signal; nobody waits for it longer than this.
  const stopped = new Promise<"timeout" | "cancelled">((resolve) => {
    controller.signal.addEventListener(
      "abort",
      () => resolve(signal.aborted ? "cancelled" : "timeout"),
      { once: true },
    );
  });
  const cancel = (): void => controller.abort(signal.reason);
  const timer = setTimeout(() => controller.abort(), timeoutMs);
  if (signal.aborted) cancel();
  signal.addEventListener("abort", cancel, { once: true });
  try {
    const result = await Promise.race([
      stopped,
      controller.signal.aborted ? stopped : start(controller.signal),
    ]);
    const milliseconds = performance.now() - started;
    if (result === "timeout") {
      const content = `Error: the tool "${tool.definition.name}" did not answer within ${timeoutMs / 1000} seconds.`;
      return { outcome: "timeout", content, citations: [], milliseconds };
    }
    if (result === "cancelled")
      return { outcome: "cancelled", content: "Error: cancelled.", citations: [], milliseconds };
    const { content, citations = [] } = result;
    return { outcome: result.isError ? "error" : "ok", content, citations, milliseconds };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
  }
}

async function callTool(tool: Tool, args: unknown, context: ToolCallContext): Promise<ToolResult> {
  try {
    return await tool.call(args, context);
  } catch (error) {
    return {
      content: `Error: ${error instanceof Error ? error.message : String(error)}`,
      isError: true,
    };
  }
}

function refused(content: string): ToolRun {
  return { outcome: "error", content, citations: [], milliseconds: 0 };
}

function unknownTool(name: string, tools: readonly Tool[]): string {
  const names = tools.map((tool) => tool.definition.name);
  const near = nearNames(name, names);
  const hint =
    near.length > 0
      ? `Did you mean ${near.join(", ")}?`
      : `The tools are: ${names.slice(0, MAX_LISTED).join(", ")}.`;
  return `Error: there is no tool "${name}". ${hint}`;
}

/** @returns what is wrong, as text for the model, or the value */
function readArguments(call: ToolCall): string | { value: unknown } {
  try {
    const value: unknown = JSON.parse(call.arguments);
    if (typeof value !== "object" || value === null || Array.isArray(value))
      return `Error: the arguments of "${call.name}" must be a JSON object. Call it again with one.`;
    return call.problem === undefined
      ? { value }
      : `Error: the arguments of "${call.name}" do not fit its schema: ${call.problem}. Call it again.`;
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return `Error: the arguments of "${call.name}" are not valid JSON (${problem}). Call it again with a JSON object.`;
  }
}
