/** What a call is run with, what a person is asked about, and what the audit log has: the same. */

import type { ToolCall } from "../chat/types.ts";

export function argumentsToRun(call: ToolCall): string {
  return call.withoutNulls ?? call.arguments;
}
