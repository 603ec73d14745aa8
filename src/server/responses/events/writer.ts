/** Turns the events of a generation into the events of one response. Pure: no clock, no log, no store. */

import type { ChatEvent, ContentToken, FinishReason, ToolCall } from "../../../chat/types.ts";
import type { FermataError } from "../../../errors.ts";
import { compactionItem } from "../input/compaction.ts";
import { wireContentToken } from "../../answer/logprobs.ts";
import type { ToldProgress } from "../../answer/token-times.ts";
import { type ClientCallItem, isClientCall } from "../calls/client-calls.ts";
import { ClientCallEvents } from "./client-call.ts";
import { wholeItem } from "./item.ts";
import { McpCallEvents, type McpCallResult, mcpListToolsEvents } from "./mcp.ts";
import { TextEvents, type TextKind } from "./text.ts";
import type { ToldOutput } from "./told-output.ts";
import { newId, RoundIds } from "../../answer/ids.ts";
import {
  type CallPresentation,
  type McpCallItem,
  type McpListToolsItem,
  type OutputItem,
  type ResponseObject,
  type ResponseStatus,
  type UnnumberedEvent,
  type WireEvent,
  wireResponseUsage,
} from "../types.ts";

export interface WriterOptions {
  response: ResponseObject;
  /** Send `response.tool_call.*`, which OpenAI's wire does not have. */
  extended: boolean;
  /** Calls of the client stay open until `answered` is called with their output. */
  waitsForOutputs: boolean;
  /** Reasoning comes with `encrypted_content`. */
  carriesReasoning: boolean;
  /** The content is a summary, which comes at once. */
  compacts: boolean;
  present(toolName: string): CallPresentation;
}

/** OpenAI's names for the reasons of an incomplete response. */
const cutReasons: Partial<Record<FinishReason, "max_output_tokens" | "content_filter">> = {
  length: "max_output_tokens",
  content_filter: "content_filter",
};

type Finish = Extract<ChatEvent, { type: "finish" }>;
type Progress = Extract<ChatEvent, { type: "progress" }>;

/** A call whose arguments are not complete, or whose output is missing. */
interface OpenCall {
  events: ClientCallEvents | McpCallEvents | null;
  presentation: CallPresentation;
  isWhole: boolean;
}

export class ResponseWriter {
  readonly response: ResponseObject;
  readonly #options: WriterOptions;
  #next = 0;
  readonly #items: OutputItem[] = [];
  #text: TextEvents | null = null;
  /** By call id, in their order. */
  readonly #calls = new Map<string, OpenCall>();
  /** The call that the model is writing. */
  #callId = "";
  #roundIds = new RoundIds();

  constructor(options: WriterOptions) {
    this.#options = options;
    this.response = options.response;
  }

  /** All items so far, complete or not. */
  get output(): readonly OutputItem[] {
    return this.#items;
  }

  /** The number of the next event. */
  get next(): number {
    return this.#next;
  }

  /** In place of `begin`: this was told before. Calls that are whole wait for their outputs; the rest that is open goes on. */
  goOn({ items, next, roundAt, isWhole }: ToldOutput): void {
    for (const [index, item] of items.entries()) {
      const isOpen = "status" in item && item.status === "in_progress";
      if (isOpen && (item.type === "message" || item.type === "reasoning")) {
        this.#text = TextEvents.told(item, index, this.#options.carriesReasoning);
        this.#add(this.#text.item);
      } else if (isClientCall(item) || item.type === "mcp_call") {
        this.#add(isOpen ? this.#toldCall(item, index, isWhole(item)) : item);
        if (index >= roundAt) this.#roundIds.goOn(item.id);
      } else this.#add(item);
    }
    this.response.status = "in_progress";
    this.#next = next;
  }

  /** A server's call has the id of its item. */
  #toldCall(item: ClientCallItem | McpCallItem, index: number, isWhole: boolean): OutputItem {
    const { name } = item;
    const isOurs = item.type === "mcp_call";
    const extendedFor = this.#options.extended ? this.response.id : null;
    const events = isOurs
      ? McpCallEvents.told(item, index)
      : ClientCallEvents.told(item, index, extendedFor);
    const kind = item.type === "custom_tool_call" ? "custom" : "function";
    this.#callId = isOurs ? item.id : item.call_id;
    this.#calls.set(this.#callId, { events, presentation: { kind, name }, isWhole });
    return events.item;
  }

  begin(): WireEvent[] {
    const created = this.#snapshot();
    this.response.status = "in_progress";
    return this.#number([
      { type: "response.created", response: created },
      { type: "response.in_progress", response: this.#snapshot() },
    ]);
  }

  /** Events of an earlier response, sent between `begin` and the first item. */
  foreign(events: readonly UnnumberedEvent[]): WireEvent[] {
    return this.#number(events);
  }

  toolList(item: McpListToolsItem): WireEvent[] {
    const outputIndex = this.#add(item);
    return this.#number(mcpListToolsEvents(item, outputIndex));
  }

  /** How much of the prompt is read. */
  progress(told: readonly ToldProgress[]): WireEvent[] {
    const type = "response.in_progress";
    const response = this.#snapshot();
    return this.#number(told.map((progress) => ({ type, response, ...progress })));
  }

  /** All events except `finish` and `progress`. */
  write(event: Exclude<ChatEvent, Finish | Progress>): WireEvent[] {
    switch (event.type) {
      case "content":
        if (this.#options.compacts) return this.#writeSummary(event.text);
        return event.text === "" && event.logprobs === undefined
          ? []
          : this.#writeText("message", event.text, event.logprobs);
      case "reasoning":
        return event.text === "" ? [] : this.#writeText("reasoning", event.text);
      case "call-start":
        return [...this.#closeText("completed"), ...this.#openCall(event.id, event.name)];
      case "call-arguments":
        return event.delta === "" ? [] : this.#writeArguments(event.delta);
      case "call-end":
        return this.#endCall(event.call);
      case "hold":
        this.endRound();
        return this.#closeText("completed");
    }
  }

  /** An approved MCP call, which ran before the model continued. */
  approvedCall(call: ToolCall, approvalRequestId: string): WireEvent[] {
    const opening = this.#openCall(call.id, call.name, approvalRequestId);
    return [...opening, ...this.#writeArguments(call.arguments), ...this.#endCall(call)];
  }

  /** Calls from here on are of another turn of the model. */
  endRound(): void {
    this.#roundIds = new RoundIds();
  }

  /** A call has its output, from this server or from the client. */
  answered(callId: string, result: McpCallResult): WireEvent[] {
    const events = this.#calls.get(callId)?.events;
    if (events === undefined || events === null) return [];
    this.#calls.delete(callId);
    const closing =
      events instanceof McpCallEvents ? events.answer(result) : events.close("completed");
    return this.#number(closing);
  }

  finish(finish: Finish, now: number): WireEvent[] {
    const cutBy = cutReasons[finish.reason];
    // With a limit of 0 the prompt is read for a later request, and nothing is missing.
    const isWarmUp = this.response.max_output_tokens === 0 && finish.reason === "length";
    const isCut = cutBy !== undefined && !isWarmUp;
    const status = isCut ? "incomplete" : "completed";
    const events = this.#closeAll(status);
    // The model may have been cut inside a call, before its name was known.
    if (this.#items.length === 0 && !isWarmUp)
      events.push(...this.#writeText("message", ""), ...this.#closeText(status));
    this.response.usage = wireResponseUsage(finish.usage);
    if (finish.warnings !== undefined) this.response.warnings = finish.warnings;
    if (isCut) this.response.incomplete_details = { reason: cutBy };
    else this.response.completed_at = now;
    return [...events, ...this.#end(status)];
  }

  fail(error: FermataError): WireEvent[] {
    const events = this.#closeAll("incomplete");
    this.response.error = { code: wireErrorCode(error), message: error.message };
    return [...events, ...this.#end("failed")];
  }

  /**
   * As `fail`, in place of an HTTP status: first the event that OpenAI's clients throw on, as they would on the status.
   * Other failures have none.
   */
  refuse(error: FermataError): WireEvent[] {
    const { type, code, message, param } = error;
    const flat = { code, message, param };
    const told = this.#number([{ type: "error", ...flat, error: { type, ...flat } }]);
    return [...told, ...this.fail(error)];
  }

  /** OpenAI's wire has no event for it. The stream ends as incomplete, and the status says why. */
  cancel(): WireEvent[] {
    const events = this.#closeAll("incomplete");
    return [...events, ...this.#end("cancelled")];
  }

  #end(status: ResponseStatus): WireEvent[] {
    this.response.status = status;
    const name = status === "cancelled" ? "incomplete" : status;
    return this.#number([{ type: `response.${name}`, response: this.#snapshot() }]);
  }

  #number(events: readonly UnnumberedEvent[]): WireEvent[] {
    return events.map(({ type, ...rest }) => ({ type, sequence_number: this.#next++, ...rest }));
  }

  #snapshot(): ResponseObject {
    return { ...this.response, output: [...this.#items] };
  }

  #writeText(kind: TextKind, text: string, logprobs?: readonly ContentToken[]): WireEvent[] {
    const events = this.#text?.kind === kind ? [] : this.#closeText("completed");
    if (this.#text === null) {
      const id = newId(kind === "message" ? "msg" : "rs");
      this.#text = new TextEvents(kind, id, this.#items.length, this.#options.carriesReasoning);
      this.#add(this.#text.item);
      events.push(...this.#number(this.#text.open()));
    }
    if (text !== "" || logprobs !== undefined) {
      const delta = this.#text.delta(
        text,
        logprobs?.map((token) => wireContentToken(token)),
      );
      events.push(...this.#number(delta));
    }
    return events;
  }

  #closeText(status: "completed" | "incomplete"): WireEvent[] {
    const text = this.#text;
    if (text === null) return [];
    this.#text = null;
    return this.#number(text.close(status));
  }

  #openCall(id: string, toolName: string, approvalRequestId: string | null = null): WireEvent[] {
    const presentation = this.#options.present(toolName);
    this.#callId = id;
    const call: OpenCall = { events: null, presentation, isWhole: false };
    this.#calls.set(id, call);
    if (presentation.kind === "mcp" && presentation.needsApproval && approvalRequestId === null)
      return [];
    const next = this.#items.length;
    call.events = this.#callEvents(id, presentation, next, approvalRequestId);
    this.#add(call.events.item);
    return this.#number(call.events.open());
  }

  #callEvents(
    callId: string,
    presentation: CallPresentation,
    outputIndex: number,
    approvalRequestId: string | null,
  ): NonNullable<OpenCall["events"]> {
    const { kind, name } = presentation;
    if (kind === "mcp") {
      const id = this.#roundIds.next("mcp");
      const { server } = presentation;
      return new McpCallEvents({ id, server, name, approvalRequestId }, outputIndex);
    }
    const { namespace } = presentation;
    const start = {
      id: this.#roundIds.next(kind === "custom" ? "ctc" : "fc"),
      callId,
      name,
      namespace,
    };
    const extendedFor = this.#options.extended ? this.response.id : null;
    return new ClientCallEvents(kind, start, outputIndex, extendedFor);
  }

  #writeArguments(delta: string): WireEvent[] {
    const events = this.#calls.get(this.#callId)?.events;
    return events ? this.#number(events.delta(delta)) : [];
  }

  #endCall({ id, arguments: text }: ToolCall): WireEvent[] {
    const call = this.#calls.get(id);
    if (call === undefined) return [];
    call.isWhole = true;
    const { events, presentation } = call;
    if (events === null) {
      this.#calls.delete(id);
      return presentation.kind === "mcp" ? this.#askApproval(presentation, text) : [];
    }
    const ending = this.#number(events.completeArguments());
    if (events instanceof McpCallEvents || this.#options.waitsForOutputs) return ending;
    return [...ending, ...this.answered(id, { output: "" })];
  }

  #askApproval({ server, name }: { server: string; name: string }, text: string): WireEvent[] {
    const item: OutputItem = {
      id: newId("mcpr"),
      type: "mcp_approval_request",
      server_label: server,
      name,
      arguments: text,
    };
    return this.#writeWhole(item);
  }

  #writeSummary(text: string): WireEvent[] {
    return this.#writeWhole(compactionItem(text));
  }

  #writeWhole(item: OutputItem): WireEvent[] {
    const outputIndex = this.#add(item);
    return this.#number(wholeItem(item, outputIndex));
  }

  /** An incomplete call that waits for its output stays in progress; the next turn closes it. */
  #closeAll(status: "completed" | "incomplete"): WireEvent[] {
    const events = this.#closeText(status);
    for (const { events: open, isWhole } of this.#calls.values()) {
      if (open === null) continue;
      const isOurs = open instanceof McpCallEvents;
      if (!isOurs && isWhole && status === "incomplete") continue;
      const closing = isOurs ? open.cut() : open.close(isWhole ? "completed" : "incomplete");
      events.push(...this.#number(closing));
    }
    this.#calls.clear();
    return events;
  }

  #add(item: OutputItem): number {
    return this.#items.push(item) - 1;
  }
}

/** OpenAI has few codes for a failed response. On the second, which no type of its clients has, codex compacts. */
function wireErrorCode({ code }: FermataError): string {
  if (code === "queue_full") return "rate_limit_exceeded";
  return code === "context_length_exceeded" ? code : "server_error";
}
