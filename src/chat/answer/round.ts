/** One round of a generation: what the model said since the prompt or the last resume. */

import { parseJson } from "../../json.ts";
import type { OutputEvent, OutputParserOptions } from "../parser/text-parser.ts";
import type { ToolCallFormat } from "../formats/format.ts";
import { OutputParser } from "../parser/output-parser.ts";
import { newCallId } from "../parser/text-parser.ts";
import type { OfferedTools } from "../formats/readers/reader.ts";
import { repeatedCall } from "./repetition.ts";
import type { GeneratedTurn } from "../prompt/suffix.ts";
import type { RenderMessage, Rendering } from "../template/template.ts";
import type { ReasoningStart } from "../template/reasoning-switch.ts";
import type { ToolCall, ToolLogger } from "../types.ts";

export interface RoundStart {
  /** What the round continues, and the messages it renders. */
  rendering: Rendering;
  before: readonly RenderMessage[];
  format: ToolCallFormat;
  reasoning: ReasoningStart;
  offered: OfferedTools | null;
  takesCall?: OutputParserOptions["takesCall"];
  /** See `OutputParserOptions`. */
  stopsRepetition?: boolean;
  /** The words that the prompt already has of it. */
  begun: string;
  /** Of its first calls; those behind them get new ones. */
  callIds?: readonly string[];
}

export class Round {
  readonly rendering: Rendering;
  readonly before: readonly RenderMessage[];
  readonly #parser: OutputParser;
  #raw: string;
  #content: string;
  #reasoning = "";
  /** The call that is being written. */
  #open: ToolCall | null = null;

  constructor(start: RoundStart) {
    this.rendering = start.rendering;
    this.before = start.before;
    this.#raw = start.begun;
    this.#content = start.begun;
    const reasoning = start.reasoning === "off" ? "split" : start.reasoning;
    const known = (start.callIds ?? []).values();
    const idOfNext = (): string => known.next().value ?? newCallId();
    this.#parser = new OutputParser({ ...start, reasoning, newCallId: idOfNext });
  }

  /** Complete calls so far. */
  get calls(): readonly ToolCall[] {
    return this.#parser.calls;
  }

  /** It stands in the form that the grammar of a round holds. */
  isGuided(call: ToolCall): boolean {
    return this.#parser.isGuided(call);
  }

  /** It ends before its third equal call. The engine has written that call, and perhaps more. */
  get endsEarly(): boolean {
    return this.#parser.endsEarly;
  }

  get inCall(): boolean {
    return this.#parser.inCall;
  }

  get inReasoning(): boolean {
    return this.#parser.inReasoning;
  }

  /** The text ends where a turn may end. */
  get isWhole(): boolean {
    return !this.#parser.inCall && !this.#parser.inReasoning;
  }

  /** Once it has ended: a stop string may have cut a call whose end has no marker. */
  get lastCallIsWhole(): boolean {
    return parseJson(this.calls.at(-1)?.arguments ?? "") !== undefined;
  }

  /** A client that sends it back sends all of it: it was cut neither inside of a call or reasoning, nor of a character. */
  get isText(): boolean {
    return this.isWhole && !this.#raw.endsWith("\uFFFD");
  }

  /** What was said beside reasoning and calls. */
  get content(): string {
    return this.#content;
  }

  push(text: string): OutputEvent[] {
    this.#raw += text;
    return this.#keep(this.#parser.push(text));
  }

  finish(natural: boolean): OutputEvent[] {
    return this.#keep(this.#parser.finish(natural));
  }

  /** Logs how it ended, in the words of `ToolCallBuffer`, which judges other servers' turns. */
  logEnd(reason: "stop" | "length" | "cancelled", logger: ToolLogger | undefined): void {
    // One that was cut before its name was known has no id.
    const cut = this.inCall && reason !== "stop" ? [this.#open?.id ?? "unnamed"] : [];
    const count = this.calls.length + cut.length;
    const wireReason = reason === "stop" && count > 0 ? "tool_calls" : reason;
    const details = { finish_reason: wireReason, tool_calls: count };
    if (reason === "length")
      logger?.warn(
        { finish_reason: reason },
        "the token limit was reached: arguments of calls may be truncated",
      );
    logger?.info({ ...details, has_tool_calls: count > 0 }, "turn ended");
    if (this.endsEarly) logger?.warn({ tool_calls: count }, repeatedCall.warning);
    // Whoever cancelled it knows that it was cut.
    if (reason !== "length" || count === 0) return;
    logger?.warn(
      { ...details, has_tool_calls: true },
      "tool calls with a finish reason that does not announce them",
    );
    if (cut.length > 0)
      logger?.error({ ...details, incomplete: cut }, "the response was cut inside of tool calls");
  }

  /** The round as a message of the conversation. */
  turn(endToken: string): GeneratedTurn {
    return {
      raw: this.#raw,
      endToken,
      message: {
        role: "assistant",
        content: this.#content,
        ...(this.#reasoning === "" ? {} : { reasoning: this.#reasoning }),
        ...(this.calls.length === 0 ? {} : { toolCalls: [...this.calls] }),
      },
    };
  }

  #keep(events: OutputEvent[]): OutputEvent[] {
    for (const event of events) {
      if (event.type === "content") this.#content += event.text;
      else if (event.type === "reasoning") this.#reasoning += event.text;
      else if (event.type === "call-start")
        this.#open = { id: event.id, name: event.name, arguments: "" };
      else if (event.type === "call-arguments") this.#open!.arguments += event.delta;
      else this.#open = null;
    }
    return events;
  }
}
