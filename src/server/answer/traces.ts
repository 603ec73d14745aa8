/**
 * How the last answers of each owner came about: their sequences and their calls, in memory. Knows neither what was said nor
 * what tools returned.
 */

import { addUsage } from "../../chat/answer/engine-run.ts";
import type { FinishReason } from "../../chat/types.ts";
import type { RunStatus, Trace, TraceCall } from "../../client/types.ts";
import { noUsage } from "../../engine/generation.ts";
import type { SequenceEvent, SequenceWatcher } from "../../engine/types.ts";
import type { RunEvent } from "../../tools/types.ts";
import type { FastifyRequest } from "fastify";
import { requestClient } from "../http/access.ts";
import { toFermataError } from "../http/error-replies.ts";
import { rowsOf, SequenceTrace, type TraceOf } from "./sequence-trace.ts";

/** Answers of one owner. */
const maxOfOwner = 64;
const maxInAll = 1024;
/** Of one answer. */
const maxCalls = 512;
const maxSequences = 128;
/** Of one sequence. */
const maxEvents = 1024;

/** What a client knows an answer by. */
export interface AnswerName {
  /** In the answer; the request's where it has none. */
  id: string;
  requestId: string;
  endpoint: string;
  /** As `GenerateRequest.client`. */
  client?: string | undefined;
}

/** @param id default: the request's */
export function answerOf(request: FastifyRequest, id: string = request.id): AnswerName {
  const endpoint = request.routeOptions.url ?? "";
  return { id, requestId: request.id, endpoint, client: requestClient(request) };
}

/** Of a run that goes on after a restart: whoever asked for it is gone. */
export function answerOfNobody(endpoint: string): AnswerName {
  return { id: "", requestId: "", endpoint };
}

export interface TraceStart extends AnswerName {
  model: string;
  owner: string;
  /** `performance.now()` at the arrival of the request. */
  startedAt: number;
}

interface OpenCall {
  wire: TraceCall;
  /** Since when a person is asked; null: nobody is. */
  askedAt: number | null;
}

/** What the engine told of a sequence, at milliseconds since the request came. */
interface RecordedSequence {
  agent: string | null;
  preparedAt: number;
  events: { event: SequenceEvent; at: number }[];
}

export class AnswerTrace {
  readonly start: TraceStart;
  readonly #createdAt = Math.floor(Date.now() / 1000);
  readonly #traceOf: TraceOf;
  readonly #onSequence: (watcher: SequenceWatcher) => void;
  readonly #sequences: RecordedSequence[] = [];
  readonly #calls: TraceCall[] = [];
  /** By agent and id: remote models number their calls again in each round. */
  readonly #open = new Map<string, OpenCall>();
  /** Answers that go on: a request may ask for several. */
  #parts = 0;
  #status: RunStatus = "running";
  #durationMs: number | null = null;
  #dropped = 0;

  /** @param onSequence called with who is told of each of its sequences */
  constructor(start: TraceStart, traceOf: TraceOf, onSequence: (watcher: SequenceWatcher) => void) {
    this.start = start;
    this.#traceOf = traceOf;
    this.#onSequence = onSequence;
  }

  get isRunning(): boolean {
    return this.#durationMs === null;
  }

  /** As `ChatRequest.watch`. */
  readonly watch = (agent: string | null = null): SequenceWatcher => {
    if (this.#sequences.length >= maxSequences) {
      this.#dropped += 1;
      return () => {};
    }
    // Of several answers, and of sub-agents, only the first is preceded by the request's own work.
    const preparedAt = this.#sequences.length === 0 ? 0 : this.#now();
    const sequence: RecordedSequence = { agent, preparedAt, events: [] };
    this.#sequences.push(sequence);
    const watcher: SequenceWatcher = (event) => this.#record(sequence, event);
    this.#onSequence(watcher);
    return watcher;
  };

  /** A part of the answer begins; `end` ends it. */
  begin(): void {
    this.#parts += 1;
  }

  observe(event: RunEvent, agent: string | null = null): void {
    switch (event.type) {
      case "tool-report":
        if (event.report.type === "agent") this.observe(event.report.event, event.report.agent);
        return;
      case "tool-start":
      case "tool-approval": {
        const { call, server } = event;
        const open = this.#callOf(call.id, { agent, tool: call.name, server });
        if (event.type === "tool-approval") this.#ask(open, event.state === "asked");
        return;
      }
      case "tool-end": {
        const { call, server, outcome } = event;
        const open = this.#callOf(call.id, { agent, tool: call.name, server });
        this.#ask(open, false);
        open.wire.end_ms = this.#now();
        open.wire.outcome = outcome;
        this.#open.delete(keyOf(agent, call.id));
        return;
      }
      case "finish":
        if (agent === null) this.#status = statusOf(event.reason);
        return;
      default:
    }
  }

  /** @param failure what ended it; undefined: its `finish` was observed */
  end(failure?: "cancelled" | "failed"): void {
    this.#parts -= 1;
    if (failure !== undefined) this.#status = failure;
    if (this.#parts > 0) return;
    if (this.#status === "running") this.#status = "failed";
    this.#durationMs = this.#now();
    for (const { wire } of this.#open.values()) wire.end_ms ??= this.#durationMs;
    this.#open.clear();
  }

  wire(): Trace {
    const { id, requestId, endpoint, model } = this.start;
    const isOver = !this.isRunning;
    const sequences = this.#sequences.map(({ agent, preparedAt, events }) => {
      const trace = new SequenceTrace(agent, preparedAt, this.#traceOf);
      for (const { event, at } of events) trace.accept(event, at);
      return trace;
    });
    const dropped = sequences.reduce((sum, each) => sum + each.dropped, this.#dropped);
    return {
      id,
      request_id: requestId,
      endpoint,
      model,
      created_at: this.#createdAt,
      status: isOver ? this.#status : "running",
      duration_ms: this.#durationMs ?? this.#now(),
      rows: rowsOf(sequences.map(({ usage }) => usage).reduce(addUsage, noUsage)),
      sequences: sequences.map((sequence) => sequence.wire()),
      calls: this.#calls.map((call) => ({ ...call })),
      dropped,
    };
  }

  /** With three digits behind the point. */
  readonly #now = (): number =>
    Math.round((performance.now() - this.start.startedAt) * 1000) / 1000;

  /** Of extensions that follow each other the last one tells all. The end is kept whatever came before. */
  #record({ events }: RecordedSequence, event: SequenceEvent): void {
    const last = events.at(-1)?.event.type;
    if (event.type === "extended" && last === "extended") events.pop();
    if (events.length >= maxEvents) {
      this.#dropped += 1;
      if (event.type !== "end") return;
    }
    events.push({ event, at: this.#now() });
  }

  #callOf(
    id: string,
    { agent, tool, server }: Pick<TraceCall, "agent" | "tool" | "server">,
  ): OpenCall {
    const key = keyOf(agent, id);
    const known = this.#open.get(key);
    if (known !== undefined) return known;
    const start_ms = this.#now();
    const wire = { id, tool, server, agent, start_ms, end_ms: null, outcome: null, approval_ms: 0 };
    const open = { wire, askedAt: null };
    this.#open.set(key, open);
    if (this.#calls.length < maxCalls) this.#calls.push(wire);
    else this.#dropped += 1;
    return open;
  }

  #ask(open: OpenCall, isAsked: boolean): void {
    const now = this.#now();
    if (open.askedAt !== null) open.wire.approval_ms += now - open.askedAt;
    open.askedAt = isAsked ? now : null;
  }
}

export class Traces {
  /** The oldest first. */
  readonly #all = new Set<AnswerTrace>();
  readonly #byWatcher = new WeakMap<SequenceWatcher, AnswerTrace>();

  /** Traces `work`. Several at a time with the same id are parts of one answer. @throws what `work` throws */
  async record<Result>(
    start: TraceStart,
    work: (trace: AnswerTrace) => Promise<Result>,
  ): Promise<Result> {
    const trace = this.begin(start);
    try {
      const result = await work(trace);
      trace.end();
      return result;
    } catch (error) {
      trace.end(toFermataError(error).code === "cancelled" ? "cancelled" : "failed");
      throw error;
    }
  }

  /** `end` of the trace must follow each call. */
  begin(start: TraceStart): AnswerTrace {
    const same = this.#find(start.owner, start.id);
    const trace = same?.isRunning === true ? same : this.#add(start);
    trace.begin();
    return trace;
  }

  /** The newest first. */
  list(owner: string, limit: number): Trace[] {
    return this.#of(owner)
      .slice(-limit)
      .reverse()
      .map((trace) => trace.wire());
  }

  /** By the id of the answer, else of its request. */
  find(owner: string, id: string): Trace | null {
    const ofRequest = this.#of(owner).findLast(({ start }) => start.requestId === id);
    return (this.#find(owner, id) ?? ofRequest)?.wire() ?? null;
  }

  #add(start: TraceStart): AnswerTrace {
    const { owner } = start;
    const own = this.#of(owner);
    if (own.length >= maxOfOwner) this.#all.delete(oldest(own));
    if (this.#all.size >= maxInAll) this.#all.delete(oldest([...this.#all]));
    const traceOf = (watcher: SequenceWatcher): string | null => {
      const other = this.#byWatcher.get(watcher)?.start;
      return other?.owner === owner ? other.id : null;
    };
    const trace: AnswerTrace = new AnswerTrace(start, traceOf, (watcher) =>
      this.#byWatcher.set(watcher, trace),
    );
    this.#all.add(trace);
    return trace;
  }

  #of(owner: string): AnswerTrace[] {
    return [...this.#all].filter(({ start }) => start.owner === owner);
  }

  #find(owner: string, id: string): AnswerTrace | undefined {
    return this.#of(owner).findLast(({ start }) => start.id === id);
  }
}

/** Of those that have ended, if any has. */
function oldest(traces: readonly AnswerTrace[]): AnswerTrace {
  return traces.find(({ isRunning }) => !isRunning) ?? traces[0]!;
}

function keyOf(agent: string | null, id: string): string {
  return JSON.stringify([agent, id]);
}

function statusOf(reason: FinishReason): RunStatus {
  if (reason === "length" || reason === "cancelled") return reason;
  return reason === "content_filter" ? "failed" : "complete";
}
