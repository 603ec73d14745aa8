/**
 * Turns the tool loop's events into the events of a run's stream. A state machine without clock, store or socket: equal
 * events give equal streams.
 */

import { delegationOf, delegationServer } from "../../agents/delegation.ts";
import { RoundText } from "../../chat/answer/round-text.ts";
import type { ChatEvent } from "../../chat/types.ts";
import type {
  ConversationEvent,
  EndDetail,
  ToolCallDetails,
  ToolCallResponse,
} from "../../client/types.ts";
import type { RunEvent, ToolEvent, ToolReport } from "../../tools/types.ts";
import { stateAfter, stateOfOutcome } from "../answer/client-view.ts";
import {
  callSummary,
  emptyEvent,
  interruptedCall,
  interruption,
  nesting,
  type OpenCall,
  progressOf,
  type Speaker,
} from "./calls.ts";
import type { EarlierEvents } from "./earlier-events.ts";
import type { Resumption } from "./held-round.ts";
import { RunPhases } from "./run-phases.ts";

type ToolStart = Extract<ToolEvent, { type: "tool-start" }>;
type ToolEnd = Extract<ToolEvent, { type: "tool-end" }>;
type Approval = Extract<ToolEvent, { type: "tool-approval" }>;

export class RunMapper {
  readonly #root: Speaker = { writing: new Map(), ids: new Map() };
  /** By the delegation that they work on. */
  readonly #agents = new Map<string, Speaker>();
  readonly #open = new Map<string, OpenCall>();
  /** Calls that the model has written and the stream does not show yet. */
  readonly #unstarted = new Set<string>();
  readonly #usedIds = new Set<string>();
  readonly #citations = new Set<string>();
  #earlierIds: EarlierEvents["ids"] = new Map();
  /** The position in its speaker's text of each call that the stream does not show yet. */
  readonly #offsets = new Map<string, number>();
  #textLength = 0;
  /** How much of the text that comes is known from an earlier process. */
  #toldAgain = 0;
  #phases = new RunPhases();
  readonly #rounds = new RoundText();
  #out: Required<ConversationEvent> = emptyEvent();

  /** Goes on where the stream of an earlier process ended. @param ids see `EarlierEvents` */
  static resumed(earlier: Resumption, ids: EarlierEvents["ids"]): RunMapper {
    const mapper = new RunMapper();
    mapper.#restore(earlier, ids);
    return mapper;
  }

  /** The id in the stream of a call of the run itself. */
  idOf(given: string): string {
    return this.#root.ids.get(given) ?? given;
  }

  /** The first event. */
  begin(): ConversationEvent {
    this.#out.details.push(...this.#phases.queued());
    return this.#take()!;
  }

  /** @param atMs since the start of the run @returns null: no event for the stream */
  map(event: RunEvent, atMs: number): ConversationEvent | null {
    const idOf = (given: string): string => this.idOf(given);
    const openCalls = (): number => this.#callsOf(this.#root);
    this.#out.details.push(...this.#phases.begunBy(event, atMs, { idOf, openCalls }));
    if (event.type === "hold") this.#rounds.endRound();
    this.#read(this.#root, event);
    return this.#take();
  }

  /** The last event. Open calls end as interrupted. */
  end(end: Omit<EndDetail, "type">): ConversationEvent {
    const reason = end.error?.message ?? interruption(end.status);
    for (const call of [...this.#open.values()].reverse()) this.#interrupt(call, reason);
    for (const id of this.#unstarted)
      this.#out.details.push({ type: "state", call_id: id, state: "failed" });
    this.#out.details.push({ type: "end", ...end });
    return this.#take()!;
  }

  #restore({ state, before, written }: Resumption, ids: EarlierEvents["ids"]): void {
    this.#rounds.add(before.message);
    this.#rounds.endRound();
    this.#textLength = before.message.length;
    this.#toldAgain = state.message.length - before.message.length;
    const phase = state.timeline.at(-1)?.phase ?? null;
    this.#phases = new RunPhases({ phase, isHeld: written.tokens.length === 0 });
    for (const citation of state.citations) this.#citations.add(citation);
    this.#earlierIds = ids;
    for (const [given, id] of ids.get("") ?? []) this.#root.ids.set(given, id);
    for (const [index, { call_id: id, tool_name: toolName }] of written.calls.entries())
      this.#root.writing.set(index, { id, toolName });
    for (const call of state.toolCalls) {
      const { call_id: id, progress, tool_call_details: details } = call;
      const known = [...(ids.get(details.parent_call_id ?? "")?.values() ?? [])];
      this.#usedIds.add(id);
      this.#offsets.set(id, details.text_offset ?? 0);
      // What was not written to its end is written anew, as another call.
      const isDropped = progress === "writing" && !known.includes(id);
      if (isDropped) this.#out.details.push({ type: "state", call_id: id, state: "failed" });
      else if (progress === "writing") this.#unstarted.add(id);
      if (progress !== "approval" && progress !== "running") continue;
      // The caller stands before what its sub-agent called.
      const caller = this.#open.get(details.parent_call_id ?? "");
      const speaker =
        caller === undefined ? this.#root : this.#agentOf(caller, details.agent ?? caller.toolName);
      this.#open.set(id, { ...progressOf(call), speaker });
    }
  }

  #read(speaker: Speaker, event: RunEvent): void {
    switch (event.type) {
      case "content":
        // A sub-agent's answer is the output of its delegation.
        if (speaker === this.#root) this.#text(event.text);
        return;
      case "reasoning":
        this.#out.details.push({ type: "reasoning", text: event.text, ...nesting(speaker) });
        return;
      case "call-start":
      case "call-arguments":
        return this.#writeCall(speaker, event);
      case "tool-start":
        return this.#start(speaker, event);
      case "tool-approval":
        return this.#approval(speaker, event);
      case "tool-report":
        return this.#report(speaker, event);
      case "tool-end":
        return this.#finish(speaker, event);
      default:
    }
  }

  #text(text: string): void {
    const told = this.#rounds.add(text);
    this.#out.message += told.slice(this.#toldAgain);
    this.#toldAgain = Math.max(0, this.#toldAgain - told.length);
    this.#textLength += told.length;
  }

  #writeCall(
    speaker: Speaker,
    event: Extract<ChatEvent, { type: "call-start" | "call-arguments" }>,
  ): void {
    if (event.type === "call-start") {
      const id = this.#newId(speaker, event.id);
      speaker.writing.set(event.index, { id, toolName: event.name });
      this.#unstarted.add(id);
    }
    const call = speaker.writing.get(event.index);
    if (call === undefined) return;
    this.#out.details.push({
      type: "arguments",
      call_id: call.id,
      tool_name: call.toolName,
      delta: event.type === "call-start" ? "" : event.delta,
      ...nesting(speaker),
    });
  }

  /** The stream shows a call once, at the question for approval or at its start. */
  #announce(speaker: Speaker, { call, server }: ToolStart | Approval): OpenCall {
    const known = this.#open.get(speaker.ids.get(call.id) ?? "");
    if (known !== undefined) return known;
    const id = speaker.ids.get(call.id) ?? this.#newId(speaker, call.id);
    this.#unstarted.delete(id);
    const isDelegation = server === delegationServer;
    const delegation = delegationOf(call, server);
    const details: ToolCallDetails = {
      summary: delegation?.task ?? callSummary(call.name, call.arguments),
      arguments: call.arguments,
      server,
      text_offset: this.#offsets.get(id) ?? 0,
      ...nesting(speaker),
      ...(delegation === null ? {} : { delegate: delegation.agent }),
    };
    const open = { id, speaker, toolName: call.name, isDelegation, details, streamed: null };
    this.#open.set(id, open);
    this.#out.tool_calls.push({
      call_id: id,
      event_type: isDelegation ? "delegation_call" : "call",
      tool_name: call.name,
      tool_response: "",
      tool_call_details: { ...details },
      is_complete: true,
    });
    return open;
  }

  #start(speaker: Speaker, event: ToolStart): void {
    const { id } = this.#announce(speaker, event);
    this.#out.details.push({ type: "state", call_id: id, state: "running" });
  }

  #approval(speaker: Speaker, event: Approval): void {
    const call = this.#announce(speaker, event);
    const { id, toolName } = call;
    const { state, askingId, server, hasChanged = false, question, mayHaveRun = false } = event;
    if (state !== "asked" && question === undefined) call.details.approval = state;
    const { arguments: text } = event.call;
    this.#out.details.push(
      {
        type: "approval",
        call_id: id,
        ...(askingId !== undefined && { asking_id: askingId }),
        tool_name: toolName,
        server,
        arguments: text,
        state,
        ...(hasChanged && { has_changed: true as const }),
        ...(question === undefined ? {} : { question }),
        ...(mayHaveRun && { may_have_run: true as const }),
      },
      { type: "state", call_id: id, state: stateAfter(event) },
    );
  }

  #report(
    speaker: Speaker,
    { call: { id: givenId }, report }: Extract<ToolEvent, { type: "tool-report" }>,
  ): void {
    const call = this.#open.get(speaker.ids.get(givenId) ?? "");
    if (call === undefined) return;
    if (report.type === "output") this.#part(call, report.text);
    else if (report.type === "progress") this.#progress(call.id, report);
    else {
      call.details.delegate ??= report.agent;
      this.#read(this.#agentOf(call, report.agent), report.event);
    }
  }

  #part(call: OpenCall, text: string): void {
    if (text === "") return;
    call.streamed = (call.streamed ?? "") + text;
    this.#result(call, { stream_part: text, is_complete: false });
  }

  #progress(callId: string, report: Extract<ToolReport, { type: "progress" }>): void {
    const { message, progress, total } = report;
    this.#out.details.push({
      type: "progress",
      call_id: callId,
      ...(message === undefined ? {} : { message }),
      ...(progress === undefined ? {} : { progress }),
      ...(total === undefined ? {} : { total }),
    });
  }

  #finish(speaker: Speaker, { call: { id: givenId }, ...end }: ToolEnd): void {
    const call = this.#open.get(speaker.ids.get(givenId) ?? "");
    if (call === undefined) return;
    const { outcome, content } = end;
    for (const inner of this.#within(call.id)) this.#interrupt(inner, interruption("failed"));
    const streamed = call.streamed ?? "";
    const goesOn = content.startsWith(streamed);
    const rest = goesOn ? content.slice(streamed.length) : "";
    const milliseconds = Math.round(end.milliseconds);
    call.details.milliseconds = milliseconds;
    if (outcome === "denied") call.details.approval = "denied";
    if (outcome !== "ok") call.details.error = (goesOn && rest !== "" ? rest : content).trim();
    this.#result(call, {
      // When a failure replaces a result that had begun, the part so far is the result.
      tool_response: goesOn || outcome === "ok" ? content : streamed,
      ...(call.isDelegation || call.streamed !== null ? { stream_part: rest } : {}),
      is_complete: true,
    });
    const state = stateOfOutcome[outcome];
    this.#out.details.push({ type: "state", call_id: call.id, state, milliseconds });
    for (const citation of end.citations) {
      if (this.#citations.has(citation)) continue;
      this.#citations.add(citation);
      this.#out.citations.push(citation);
    }
    this.#close(call);
  }

  #interrupt(call: OpenCall, reason: string): void {
    this.#out.tool_calls.push(interruptedCall(call, reason));
    this.#out.details.push({ type: "state", call_id: call.id, state: "failed" });
    this.#close(call);
  }

  #result(
    call: OpenCall,
    parts: Pick<ToolCallResponse, "stream_part" | "is_complete"> & { tool_response?: string },
  ): void {
    const { delegate } = call.details;
    // Every event has its position; only the first and the last have its task.
    const place = { ...nesting(call.speaker), ...(delegate === undefined ? {} : { delegate }) };
    this.#out.tool_calls.push({
      call_id: call.id,
      event_type: call.isDelegation ? "delegation_result" : "result",
      tool_name: call.toolName,
      tool_response: "",
      tool_call_details: parts.is_complete ? { ...call.details } : place,
      ...parts,
    });
  }

  #close(call: OpenCall): void {
    this.#open.delete(call.id);
    this.#agents.delete(call.id);
    // Remote models number their calls again in each round.
    for (const [given, id] of call.speaker.ids) if (id === call.id) call.speaker.ids.delete(given);
  }

  /** Open calls below a delegation, the deepest first. */
  #within(parent: string): OpenCall[] {
    const own = [...this.#open.values()].filter(({ speaker }) => speaker.parent === parent);
    return own.flatMap((call) => [...this.#within(call.id), call]);
  }

  #agentOf(call: OpenCall, agent: string): Speaker {
    const known = this.#agents.get(call.id);
    if (known !== undefined) return known;
    const ids = new Map(this.#earlierIds.get(call.id));
    const speaker = { agent, parent: call.id, writing: new Map(), ids };
    this.#agents.set(call.id, speaker);
    return speaker;
  }

  /** Two speakers, or two rounds of one speaker, may use the same id. */
  #newId(speaker: Speaker, given: string): string {
    let id = given;
    for (let count = 2; this.#usedIds.has(id); count++) id = `${given}_${count}`;
    this.#usedIds.add(id);
    speaker.ids.set(given, id);
    this.#offsets.set(id, this.#lengthSaid(speaker));
    return id;
  }

  /** A sub-agent's text is the result of its delegation. */
  #lengthSaid({ parent }: Speaker): number {
    if (parent === undefined) return this.#textLength;
    return this.#open.get(parent)?.streamed?.length ?? 0;
  }

  #callsOf(speaker: Speaker): number {
    return [...this.#open.values()].filter((call) => call.speaker === speaker).length;
  }

  #take(): ConversationEvent | null {
    const { message, citations, tool_calls: calls, details } = this.#out;
    this.#out = emptyEvent();
    if (details.length > 0) return { message, citations, tool_calls: calls, details };
    const isEmpty = message === "" && citations.length === 0 && calls.length === 0;
    return isEmpty ? null : { message, citations, tool_calls: calls };
  }
}
