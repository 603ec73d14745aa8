import type { ChatEvent, ToolCall } from "../chat/types.ts";
import { FermataError } from "../errors.ts";

/** What was said, from the events that a client of this mode may see. */
export interface Answer {
  content: string;
  reasoning: string;
  calls: readonly ToolCall[];
  finish: Extract<ChatEvent, { type: "finish" }>;
}

/** Reads to the end. @throws whatever ended the generation */
export async function collectAnswer(events: AsyncIterable<ChatEvent>): Promise<Answer> {
  let content = "";
  let reasoning = "";
  for await (const event of events) {
    if (event.type === "content") content += event.text;
    else if (event.type === "reasoning") reasoning += event.text;
    else if (event.type === "finish")
      return { content, reasoning, calls: event.calls, finish: event };
  }
  throw new FermataError("internal_error", "The events ended without finish.");
}
