/** Tool-call formats as data. */

import type { PauseTriggers } from "../../engine/types.ts";
import type { ChatModel } from "../chat-engine.ts";
import type { ReasoningMarkers } from "../normalize.ts";

export interface ToolCallFormat {
  readonly name: string;
  /** Around one call: a JSON object with `name` and `arguments`. */
  readonly callOpen: string;
  readonly callClose: string;
  /** A JSON object at the start of a line is a call if it names an offered tool; the same in a ```json block. */
  readonly bareCalls: boolean;
  readonly reasoning: ReasoningMarkers;
}

/** Hermes tags, as Qwen and many others are trained on. */
export const qwenFormat: ToolCallFormat = {
  name: "qwen",
  callOpen: "<tool_call>",
  callClose: "</tool_call>",
  bareCalls: true,
  reasoning: { open: "<think>", close: "</think>" },
};

/** The format's reasoning markers if this model knows them. */
export function reasoningOf(
  format: ToolCallFormat,
  model: ChatModel,
  template: string,
): ReasoningMarkers | null {
  const { open } = format.reasoning;
  const known = template.includes(open) || model.specialTokens.some((token) => token.text === open);
  return known ? format.reasoning : null;
}

/** A bare JSON call has no marker: the end of a turn is held, and the parse decides. */
export function pauseTriggersOf(format: ToolCallFormat): PauseTriggers {
  return {
    callOpen: format.callOpen,
    callClose: format.callClose,
    holdAtEnd: "always",
    holdAtTextAfterCall: true,
  };
}
