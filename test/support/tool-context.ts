import type { ToolCallContext, ToolReport } from "../../src/tools/types.ts";

/** What a tool is called with, if its test does not care. */
export function toolContext(
  signal: AbortSignal = new AbortController().signal,
  report: (report: ToolReport) => void = () => {},
): ToolCallContext {
  return { callId: "call_1", signal, report };
}
