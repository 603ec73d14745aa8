/** Traces as text for a terminal. */

import type { Trace, TraceCall, TraceRows, TraceSpan } from "../client/types.ts";
import { sourceWords, waitWords } from "../client/trace-words.ts";
import { table } from "./table.ts";

const barWidth = 32;

/** A line each. */
export function traceList(traces: readonly Trace[]): string {
  const rows = traces.map((trace) => [
    trace.id,
    trace.status,
    timeText(trace.duration_ms),
    String(trace.rows.prompt + trace.rows.resumed),
    String(trace.rows.cached),
    String(trace.rows.prefilled),
    String(trace.rows.generated),
    String(trace.calls.length),
    trace.endpoint,
  ]);
  const names = [
    "ID",
    "STATUS",
    "TIME",
    "READ",
    "CACHED",
    "COMPUTED",
    "WRITTEN",
    "CALLS",
    "ENDPOINT",
  ];
  return table([names, ...rows]);
}

/** A line for each span and each call, with its time as a bar. */
export function traceText(trace: Trace): string {
  const endMs = Math.max(trace.duration_ms, 0.001);
  const many = trace.sequences.length > 1;
  const lines = trace.sequences.flatMap(({ agent, spans }, index) => {
    const calls = trace.calls
      .filter((call) => call.agent === agent && isFirstOf(trace, index))
      .map((call) => ({ at: call.start_ms, cells: callCells(call, endMs) }));
    const all = spans
      .map((span) => ({ at: span.start_ms, cells: spanCells(span, endMs) }))
      .concat(calls)
      .toSorted((one, other) => one.at - other.at);
    const title = many ? [[`sequence ${index + 1}`, "", "", "", agent ?? ""]] : [];
    return [...title, ...all.map(({ cells }) => cells)];
  });
  const { id, endpoint, model, status, duration_ms: duration, rows, dropped } = trace;
  const time = `${status === "running" ? "for" : "in"} ${timeText(duration)}`;
  const head = `${id}  ${endpoint}  ${model}  ${status} ${time}\n`;
  const rest = dropped === 0 ? "" : `${dropped} more phases and calls were not kept.\n`;
  return `${head}${rowsText(rows)}\n\n${table([["PHASE", "AT", "TIME", "".padEnd(barWidth), ""], ...lines])}${rest}`;
}

/** Where every token of the prompt and the results came from. */
function rowsText({
  prompt,
  cached,
  resumed,
  prefilled,
  recomputed,
  generated,
}: TraceRows): string {
  const parts = [
    `${prompt} prompt tokens, ${cached} of them cached`,
    `${resumed} tokens of results`,
    `${prefilled} rows computed${recomputed === 0 ? ", none twice" : `, ${recomputed} of them again`}`,
    `${generated} tokens written`,
  ];
  return `${parts.join("; ")}.`;
}

function isFirstOf({ sequences }: Trace, index: number): boolean {
  const agent = sequences[index]?.agent;
  return sequences.findIndex((sequence) => sequence.agent === agent) === index;
}

function spanCells(span: TraceSpan, endMs: number): string[] {
  const { phase, start_ms: start, end_ms: end } = span;
  return [phase, ...timeCells(start, end, endMs), spanWords(span)];
}

function callCells(call: TraceCall, endMs: number): string[] {
  const { tool, server, start_ms: start, end_ms: end, outcome, approval_ms: approval } = call;
  const asked = approval > 0 ? `, ${timeText(approval)} for approval` : "";
  return [
    "  tool",
    ...timeCells(start, end, endMs),
    `${tool} (${server}): ${outcome ?? "runs"}${asked}`,
  ];
}

function timeCells(startMs: number, endMs: number | null, wholeMs: number): string[] {
  const end = endMs ?? wholeMs;
  const at = Math.min(barWidth - 1, Math.floor((startMs / wholeMs) * barWidth));
  const length = Math.max(1, Math.round(((end - startMs) / wholeMs) * barWidth));
  const bar = `${" ".repeat(at)}${"█".repeat(Math.min(length, barWidth - at))}`;
  return [timeText(startMs), endMs === null ? "…" : timeText(end - startMs), bar];
}

function spanWords({ phase, waits_for: waits, behind, rows, reused, source }: TraceSpan): string {
  if (phase === "queued") {
    const other = behind === null || behind === undefined ? "" : ` (${behind})`;
    return waits === null || waits === undefined ? "" : `waits for ${waitWords(waits)}${other}`;
  }
  if (phase === "hold") return rows ? `${rows} tokens of results computed meanwhile` : "";
  if (rows === undefined) return "";
  const found = reused ? `; ${reused} positions ${sourceWords(source ?? "")}` : "";
  return `${rows} rows${found}`;
}

function timeText(milliseconds: number): string {
  if (milliseconds < 10) return `${milliseconds.toFixed(1)} ms`;
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  return `${(milliseconds / 1000).toFixed(2)} s`;
}
