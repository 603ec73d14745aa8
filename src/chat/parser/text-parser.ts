/** What the parsers of a round's text have in common. Type-only. */

import type { ChatEvent } from "../types.ts";
import type { ToolCallFormat } from "../formats/format.ts";
import type { OfferedTools } from "../formats/readers/reader.ts";

export type OutputEvent = Extract<
  ChatEvent,
  { type: "reasoning" | "content" | "call-start" | "call-arguments" | "call-end" }
>;

export interface OutputParserOptions {
  format: ToolCallFormat;
  /** The offered tools; null when no call is looked for. */
  offered: OfferedTools | null;
  /** `split`: the text may begin with reasoning. `open`: the prompt already opened it. */
  reasoning: "no" | "split" | "open";
  newCallId?: (() => string) | undefined;
}

/** Works a character at a time. */
export interface TextParser {
  /** The text ends inside of what is, or may become, a call. */
  readonly inCall: boolean;
  /** The text ends inside of reasoning that was not closed. */
  readonly inReasoning: boolean;
  feed(character: string): void;
  /** @param natural the model ended its turn; else the text was cut and an open call stays incomplete. */
  finish(natural: boolean): void;
}
