/** Text and calls in their order of arrival. Pure. */

import { type Call, delegateOf } from "./turn.ts";

export type Segment =
  | { kind: "text"; start: number; text: string }
  /** Consecutive calls of one kind: tools, or delegations. */
  | { kind: "calls"; start: number; areDelegations: boolean; calls: Call[] };

/** @param calls the calls made in this text */
export function segmentsOf(text: string, calls: readonly Call[]): Segment[] {
  const segments: Segment[] = [];
  let position = 0;
  const addText = (end: number): void => {
    const part = text.slice(position, end);
    if (part.trim() !== "") segments.push({ kind: "text", start: position, text: part });
    position = Math.max(position, end);
  };
  for (const call of calls.toSorted((a, b) => offsetOf(a) - offsetOf(b))) {
    const offset = Math.min(offsetOf(call), text.length);
    addText(offset);
    const last = segments.at(-1);
    const areDelegations = delegateOf(call) !== null;
    if (last?.kind === "calls" && last.areDelegations === areDelegations) last.calls.push(call);
    else segments.push({ kind: "calls", start: offset, areDelegations, calls: [call] });
  }
  addText(text.length);
  return segments;
}

function offsetOf({ tool_call_details: { text_offset: offset } }: Call): number {
  return typeof offset === "number" ? offset : 0;
}
