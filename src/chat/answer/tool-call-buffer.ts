/**
 * Decides whether the calls of a turn are run, whoever generated it. Presence of calls decides, and that each
 * one's arguments are complete; the finish reason is advice, since servers contradict themselves in it.
 */

import { parseJson } from "../../json.ts";
import type { ToolCall, ToolLogger } from "../types.ts";

/** After these a turn that has calls is as it should be. Some servers say `tool_call`, older ones `function_call`. */
const callReasons: ReadonlySet<string> = new Set(["tool_calls", "tool_call", "function_call"]);
/** The model ended its turn; after anything else what is incomplete was cut. */
const naturalReasons: ReadonlySet<string> = new Set([...callReasons, "stop", "end_turn", "eos"]);

export class ToolCallBuffer {
  readonly #finishReason: string | null;
  readonly #logger: ToolLogger | undefined;
  readonly #calls = new Map<string, ToolCall>();

  /** @param finishReason of the response, or null when it has none; any server's, known or not */
  constructor(finishReason: string | null = null, logger?: ToolLogger) {
    this.#finishReason = finishReason;
    this.#logger = logger;
    if (finishReason === "length") {
      const details = { finish_reason: finishReason };
      logger?.warn(details, "the token limit was reached: arguments of calls may be truncated");
    }
  }

  get #wasCut(): boolean {
    return this.#finishReason !== null && !naturalReasons.has(this.#finishReason);
  }

  get size(): number {
    return this.#calls.size;
  }

  /** A call whose id is known goes on, as in a stream: its arguments are appended, unless they are whole. */
  addToolCall(call: ToolCall): void {
    const known = this.#calls.get(call.id);
    const goesOn =
      known !== undefined && (known.arguments.trim() === "" || !isWhole(known.arguments));
    this.#calls.set(
      call.id,
      goesOn ? { ...known, arguments: known.arguments + call.arguments } : call,
    );
  }

  /**
   * Its arguments are whole JSON, or there are none; a turn that was cut may have lost what is not there.
   * Unknown ids are not complete.
   */
  isComplete(id: string): boolean {
    const call = this.#calls.get(id);
    if (call === undefined) return false;
    return this.#wasCut && call.arguments.trim() === "" ? false : isWhole(call.arguments);
  }

  /** By id, in the order they came. */
  getIncompleteToolCalls(): Map<string, ToolCall> {
    return new Map([...this.#calls].filter(([id]) => !this.isComplete(id)));
  }

  /**
   * All or nothing: false when the response was cut inside of a call, whatever its siblings are, and
   * when it announces calls and has none.
   */
  validateCompletionState(): boolean {
    const reason = this.#finishReason;
    const incomplete = [...this.getIncompleteToolCalls().keys()];
    const details = { finish_reason: reason, tool_calls: this.size };
    if (incomplete.length > 0 && this.#wasCut) {
      this.#logger?.error({ ...details, incomplete }, "the response was cut inside of tool calls");
      return false;
    }
    if (this.size === 0 && reason !== null && callReasons.has(reason)) {
      this.#logger?.error(details, "the finish reason announces tool calls and there are none");
      return false;
    }
    return true;
  }

  /** Logs what the response says of itself, and where it contradicts itself. */
  shouldExecuteToolCalls(): boolean {
    const reason = this.#finishReason;
    const hasCalls = this.size > 0;
    const details = { finish_reason: reason, has_tool_calls: hasCalls, tool_calls: this.size };
    this.#logger?.info(details, "turn ended");
    if (hasCalls && reason !== null && !callReasons.has(reason))
      this.#logger?.warn(details, "tool calls with a finish reason that does not announce them");
    return this.validateCompletionState() && hasCalls;
  }
}

function isWhole(text: string): boolean {
  return text.trim() === "" || parseJson(text) !== undefined;
}
