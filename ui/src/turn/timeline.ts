/** The phases of a run as time spans. Pure. */

import type { Phase } from "../../../src/client/types.ts";
import type { PhaseDetail } from "../api/wire.ts";
import type { Call } from "./turn.ts";

export interface Span {
  phase: Phase;
  startMs: number;
  endMs: number;
  tokens: number | null;
  /** The tool's name; null for phases of the sequence. */
  label: string | null;
}

export interface Timeline {
  /** Phases of the sequence, in order. */
  sequence: Span[];
  /** One row for each tool call. */
  tools: Span[];
  endMs: number;
}

/** @param nowMs milliseconds since the run began; null if it has ended */
export function timelineOf(
  phases: readonly PhaseDetail[],
  calls: readonly Call[],
  nowMs: number | null,
): Timeline {
  const lastMs = phases.reduce((latest, { at_ms: at }) => Math.max(latest, at), 0);
  const callEnds = phases
    .filter(({ phase }) => phase === "tool")
    .map(({ at_ms: at, call_id: id }) => at + (callOf(calls, id)?.milliseconds ?? 0));
  const endMs = Math.max(lastMs, nowMs ?? 0, ...callEnds, 1);

  const steps = phases.filter(({ phase }) => phase !== "tool");
  const sequence: Span[] = [];
  for (const [index, { phase, at_ms: startMs, tokens = null }] of steps.entries()) {
    const spanEnd = steps[index + 1]?.at_ms ?? endMs;
    sequence.push({ phase, startMs, endMs: spanEnd, tokens, label: null });
  }

  const tools: Span[] = [];
  for (const { phase, at_ms: startMs, call_id: id } of phases) {
    const call = callOf(calls, id);
    if (phase !== "tool") continue;
    const duration = call?.milliseconds ?? endMs - startMs;
    const label = call?.tool_name ?? "tool";
    tools.push({ phase, startMs, endMs: startMs + duration, tokens: null, label });
  }
  return { sequence, tools, endMs };
}

function callOf(calls: readonly Call[], id: string | undefined): Call | undefined {
  return calls.find((call) => call.call_id === id);
}

/** The phase at the end of `phases`; null before the first. */
export function currentPhase(phases: readonly PhaseDetail[]): Exclude<Phase, "tool"> | null {
  const last = phases.findLast(({ phase }) => phase !== "tool")?.phase;
  return last === undefined || last === "tool" ? null : last;
}

export function formatMs(milliseconds: number): string {
  if (milliseconds < 1) return "<1 ms";
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  const minutes = Math.floor(milliseconds / 60_000);
  return `${minutes} min ${Math.round((milliseconds % 60_000) / 1000)} s`;
}
