/** `fermata trace`: how an answer of a running server came about. */

import type { Trace, TraceCall, TraceRows, TraceSpan } from "../../client/types.ts";
import { askServer, serverOptions } from "./ask-server.ts";
import type { Command, CommandContext, ParsedArguments } from "./command.ts";
import { inGroup } from "../options/option-table.ts";
import { sourceWords, waitWords } from "../../client/trace-words.ts";
import { table } from "./table.ts";

const traceOptions = inGroup("Trace", {
  ...serverOptions("Trace"),
  json: { kind: "boolean", default: false, help: "Print the traces as JSON." },
});

export const traceCommand: Command = {
  name: "trace",
  summary: "Show how an answer came about: its phases, its calls, and the rows that were computed.",
  usage: "trace [ID] [options]",
  operands: { min: 0, max: 1 },
  options: traceOptions,
  examples: `  The last answers, the newest last:
    fermata trace
  One of them, by the id of a response, completion, message, run or request:
    fermata trace resp_0123
  Of a server elsewhere, for a script:
    fermata trace resp_0123 --url http://host:8000 --api-key KEY --json
`,
  notes: `The server keeps the traces of the last 64 answers of each key. A key needs the scope "admin", and
sees its own answers. A trace has no text of messages, arguments or results.
`,
  run: runTrace,
};

/** @throws FermataError endpoint_failed */
async function runTrace(args: ParsedArguments, context: CommandContext): Promise<number> {
  const [id] = args.operands;
  const isJson = args.values.get("json") === true;
  if (id !== undefined) {
    const path = `/api/traces/${encodeURIComponent(id)}`;
    const trace = (await askServer(path, args, context)) as Trace;
    context.out(isJson ? `${JSON.stringify(trace, null, 2)}\n` : traceText(trace));
    return 0;
  }
  const { traces } = (await askServer("/api/traces", args, context)) as { traces: Trace[] };
  if (isJson) context.out(`${JSON.stringify(traces, null, 2)}\n`);
  else if (traces.length > 0) context.out(traceList(traces.toReversed()));
  else context.err("Nothing was answered yet.\n");
  return 0;
}

const barWidth = 32;

/** A line each. */
function traceList(traces: readonly Trace[]): string {
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
function traceText(trace: Trace): string {
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
