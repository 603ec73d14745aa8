/**
 * An answer as it comes: text as it is written, a card for each call and for what came of it, what
 * sub-agents say below the call that they work on. Nothing is written over but the status line, so that
 * a terminal may be resized and a pipe stays readable.
 */

import {
  applyEvent,
  type ConversationEvent,
  type ConversationState,
  type Detail,
  emptyState,
  type ToolCallResponse,
  type ToolCallState,
} from "../../client/index.ts";
import type { Screen } from "./screen.ts";

const shownLines = 4;

interface PrinterOptions {
  /** Where the answer goes. */
  text: Screen;
  /** Where all else goes; may be the same. */
  cards: Screen;
  showReasoning: boolean;
}

export class AnswerPrinter {
  readonly #text: Screen;
  readonly #cards: Screen;
  readonly #showReasoning: boolean;
  #state: ConversationState = emptyState;
  /** Calls whose card stands. */
  readonly #opened = new Set<string>();
  /** What sub-agents wrote of a line that has not ended, by call. */
  readonly #unfinished = new Map<string, string>();
  #isThinking = false;
  readonly #now: () => number;
  readonly #startedAt: number;

  constructor({ text, cards, showReasoning }: PrinterOptions, now = (): number => Date.now()) {
    this.#text = text;
    this.#cards = cards;
    this.#showReasoning = showReasoning;
    this.#now = now;
    this.#startedAt = now();
  }

  get state(): ConversationState {
    return this.#state;
  }

  apply(event: ConversationEvent): void {
    this.#state = applyEvent(this.#state, event);
    for (const detail of event.details ?? []) this.#applyDetail(detail);
    if (event.message !== "") this.#say(event.message);
    for (const response of event.tool_calls) this.#applyCall(response);
    this.refresh();
  }

  /** One that was stored: its calls, then its text. */
  replay(state: ConversationState): void {
    this.#state = state;
    for (const call of state.toolCalls) {
      this.#open(call);
      if (call.is_complete) this.#close(call);
    }
    this.#say(state.message);
    this.end();
  }

  get wasStopped(): boolean {
    return this.#state.end?.status === "cancelled";
  }

  /** After the last event. */
  end(): void {
    const { end, citations } = this.#state;
    this.#text.startLine();
    this.#cards.status("");
    if (citations.length > 0) this.#card("dim", `Sources: ${citations.join(", ")}`);
    if (end === null || end.status === "complete") return;
    const words = {
      length: "The answer was cut: the context or a limit is full.",
      cancelled: "Stopped.",
      failed: `Failed: ${end.error?.message ?? "the server does not say why"}`,
    };
    this.#card(end.status === "failed" ? "red" : "yellow", words[end.status]);
  }

  /** What the person must know, beside the answer. */
  warn(text: string): void {
    this.#card("red", text);
  }

  /** The status line, anew: time passes, and a terminal may have another width. */
  refresh(): void {
    if (!this.#cards.isTerminal) return;
    const seconds = ((this.#now() - this.#startedAt) / 1000).toFixed(0);
    this.#cards.status(`${this.#present()} ${seconds} s, Ctrl-C stops`);
  }

  #present(): string {
    const open = this.#state.toolCalls.filter(({ is_complete: isComplete }) => !isComplete);
    const call = open.findLast(({ tool_name: name }) => name !== "");
    if (call === undefined) return this.#isThinking ? "thinking" : "...";
    if (call.progress === "writing")
      return `calling ${call.tool_name} ${call.arguments}`.slice(-200);
    const { message, progress, total } = call.status ?? {};
    const share = progress === undefined ? "" : ` ${progress}${total ? `/${total}` : ""}`;
    return `held: ${open.map(({ tool_name: name }) => name).join(", ")}${share} ${message ?? ""}`;
  }

  #say(text: string): void {
    if (this.#isThinking) this.#cards.startLine();
    this.#isThinking = false;
    if (this.#text !== this.#cards) this.#cards.status("");
    this.#text.write(this.#text.foreign(text));
  }

  #applyDetail(detail: Detail): void {
    if (detail.type === "reasoning") {
      this.#isThinking = true;
      if (this.#showReasoning && detail.parent_call_id === undefined)
        this.#cards.write(this.#cards.style("dim", this.#cards.foreign(detail.text)));
    } else if (detail.type === "state" && detail.state !== "approval") {
      const call = this.#find(detail.call_id);
      if (call !== undefined && detail.state === "running") this.#open(call);
    }
  }

  #applyCall(response: ToolCallResponse): void {
    const call = this.#find(response.call_id);
    if (call === undefined) return;
    this.#open(call);
    if (isDelegation(call) && response.stream_part) this.#sayWithin(call, response.stream_part);
    const isResult = response.event_type.endsWith("result");
    if (isResult && response.is_complete) this.#close(call);
  }

  #find(id: string): ToolCallState | undefined {
    return this.#state.toolCalls.find(({ call_id: other }) => other === id);
  }

  #open(call: ToolCallState): void {
    if (this.#opened.has(call.call_id)) return;
    this.#opened.add(call.call_id);
    const { delegate, summary } = call.tool_call_details;
    const name = delegate === undefined ? call.tool_name : `${call.tool_name} -> ${delegate}`;
    const what = isDelegation(call) ? (summary ?? call.arguments) : call.arguments;
    const start = `${this.#indent(call)}* `;
    const room = this.#cards.columns - start.length - name.length - 2;
    const cards = this.#cards;
    cards.line(`${start}${cards.style("cyan", cards.foreign(name))} ${cards.clip(what, room)}`);
  }

  #close(call: ToolCallState): void {
    const cards = this.#cards;
    const rest = this.#unfinished.get(call.call_id) ?? "";
    if (rest !== "") this.#lineWithin(call, rest);
    this.#unfinished.delete(call.call_id);
    const { error, approval } = call.tool_call_details;
    const time = call.milliseconds === null ? "" : `, ${(call.milliseconds / 1000).toFixed(1)} s`;
    const [style, word] =
      call.progress === "denied" || approval === "denied"
        ? (["yellow", "denied"] as const)
        : error === undefined && call.progress !== "failed"
          ? (["green", "done"] as const)
          : (["red", "failed"] as const);
    const indent = `${this.#indent(call)}  `;
    cards.line(
      `${indent}${cards.style(style, `${word}: ${cards.foreign(call.tool_name)}`)}${time}`,
    );
    // What a sub-agent said stands there already.
    if (isDelegation(call) && word === "done") return;
    const lines = (call.tool_response || call.content || error || "").trimEnd().split("\n");
    const room = cards.columns - indent.length - 3;
    for (const line of lines.slice(0, shownLines))
      if (line !== "") cards.line(`${indent}${cards.style("dim", `| ${cards.clip(line, room)}`)}`);
    const hidden = lines.length - shownLines;
    if (hidden > 0) cards.line(`${indent}${cards.style("dim", `| (${hidden} more lines)`)}`);
  }

  /** Whole lines: several sub-agents may speak at once. */
  #sayWithin(call: ToolCallState, part: string): void {
    const lines = `${this.#unfinished.get(call.call_id) ?? ""}${part}`.split("\n");
    this.#unfinished.set(call.call_id, lines.pop()!);
    for (const line of lines) this.#lineWithin(call, line);
  }

  #lineWithin(call: ToolCallState, line: string): void {
    const cards = this.#cards;
    const name = call.tool_call_details.delegate ?? call.tool_name;
    cards.line(`${this.#indent(call)}  ${cards.style("dim", `${name}:`)} ${cards.foreign(line)}`);
  }

  #indent(call: ToolCallState): string {
    let depth = 0;
    let parent = call.tool_call_details.parent_call_id;
    while (parent !== undefined && depth < 16) {
      depth += 1;
      parent = this.#find(parent)?.tool_call_details.parent_call_id;
    }
    return "    ".repeat(depth);
  }

  #card(style: "dim" | "yellow" | "red", text: string): void {
    this.#cards.line(this.#cards.style(style, this.#cards.foreign(text)));
  }
}

function isDelegation({ event_type: type, tool_call_details: details }: ToolCallState): boolean {
  return type.startsWith("delegation") || details.delegate !== undefined;
}
