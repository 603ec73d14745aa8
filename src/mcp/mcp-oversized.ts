/** Answers that cannot be read become errors of their call, so that nobody waits for them. */

import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import type { Line } from "./mcp-lines.ts";

/** JSON-RPC's range for errors of an implementation. */
const tooLargeCode = -32010;

export type Oversized = Extract<Line, { kind: "oversized" }>;

/**
 * The call's id stands at the very beginning or the very end of a message, whichever its server
 * prefers; within, it would be content.
 */
export function idOfOversized({ head, tail }: Pick<Oversized, "head" | "tail">): number | null {
  const first = /^[^{]{0,16}\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*(\d{1,15})\s*,/.exec(
    head,
  );
  const last = /,\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(tail);
  const id = first?.[1] ?? last?.[1];
  return id === undefined ? null : Number(id);
}

export function tooLarge(id: number, bytes: number, limitBytes: number): JSONRPCMessage {
  const message = `its answer of ${mebibytes(bytes)} is larger than the ${mebibytes(limitBytes)} that are read`;
  return failedCall(id, message, tooLargeCode);
}

export function failedCall(id: number, message: string, code = -32000): JSONRPCMessage {
  return { jsonrpc: "2.0", id, error: { code, message } };
}

export function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`;
}
