/** What a trace says, for people. Pure. */

import { sourceWords, waitWords } from "../../../src/client/trace-words.ts";
import type { Trace, TraceCall, TraceSequence, TraceSpan } from "../api/wire.ts";
import { formatMs } from "../turn/timeline.ts";

export interface Bar {
  /** Names its colour. */
  phase: TraceSpan["phase"] | "tool";
  startMs: number;
  endMs: number;
  name: string;
  /** Empty: nothing to add. */
  words: string;
}

export interface Lane {
  name: string;
  bars: Bar[];
}

/** What it is at, or how it ended. */
export function stateWords(trace: Trace): string {
  if (trace.status !== "running") return trace.status;
  const going = trace.sequences.filter(({ end }) => end === null);
  const words = going.map((sequence) => {
    const whose = sequence.agent === null ? "" : `${sequence.agent}: `;
    return `${whose}${spanState(sequence, trace)}`;
  });
  return words.length === 0 ? "running" : [...new Set(words)].join("; ");
}

function spanState({ spans, agent }: TraceSequence, { calls }: Trace): string {
  const last = spans.at(-1);
  if (last === undefined) return "running";
  if (last.phase === "queued")
    return `queued, waits for ${waitWords(last.waits_for ?? "")}`.replace(/, waits for $/, "");
  if (last.phase !== "hold") return last.phase;
  const open = calls.filter((call) => call.end_ms === null && call.agent === agent);
  const names = open.map(({ tool }) => tool).join(", ");
  return names === "" ? "held" : `held, waits for ${names}`;
}

/** A lane for each sequence and for each call. @param nowMs the end of what goes on */
export function lanesOf(trace: Trace, nowMs: number): Lane[] {
  const { sequences, calls } = trace;
  return [
    ...sequences.map((sequence, index) => ({
      name: sequence.agent ?? (sequences.length > 1 ? `sequence ${index + 1}` : "sequence"),
      bars: sequence.spans.map((span) => ({
        phase: span.phase,
        startMs: span.start_ms,
        endMs: span.end_ms ?? nowMs,
        name: span.phase,
        words: spanWords(span),
      })),
    })),
    ...calls.map((call) => ({ name: call.tool, bars: [callBar(call, nowMs)] })),
  ];
}

function spanWords({ phase, waits_for: waits, behind, rows, reused, source }: TraceSpan): string {
  if (phase === "queued") {
    if (waits === null || waits === undefined) return "";
    const other = behind === null || behind === undefined ? "" : ` (${behind})`;
    return `waits for ${waitWords(waits)}${other}`;
  }
  if (phase === "hold")
    return rows === undefined || rows === 0 ? "" : `${rows} tokens of results computed meanwhile`;
  if (rows === undefined) return "";
  const found =
    reused === undefined || reused === 0
      ? ""
      : `; ${reused} positions ${sourceWords(source ?? "")}`;
  return `${rows} rows${found}`;
}

function callBar(call: TraceCall, nowMs: number): Bar {
  const { tool, server, start_ms: startMs, end_ms: end, outcome, approval_ms: approval } = call;
  const asked = approval === 0 ? "" : `, ${formatMs(approval)} for approval`;
  const words = `${server}: ${outcome ?? "runs"}${asked}`;
  return { phase: "tool", startMs, endMs: end ?? nowMs, name: tool, words };
}
