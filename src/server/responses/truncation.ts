/** `truncation: "auto"`: what does not fit into the context goes, the oldest turns first. */

import type { ChatMessage } from "../../chat/types.ts";
import { FermataError } from "../../errors.ts";

/** @param count throws context_length_exceeded. @throws it, if not even the last turn fits */
export async function fitHistory(
  messages: ChatMessage[],
  count: (messages: ChatMessage[]) => Promise<number>,
): Promise<ChatMessage[]> {
  for (let kept = messages; ;) {
    try {
      await count(kept);
      return kept;
    } catch (error) {
      const next = withoutOldestTurn(kept);
      const isTooLong = error instanceof FermataError && error.code === "context_length_exceeded";
      if (!isTooLong || next === null) throw error;
      kept = next;
    }
  }
}

/** A turn goes from one message of the user to the next: half of one would be nonsense. */
function withoutOldestTurn(messages: ChatMessage[]): ChatMessage[] | null {
  const start = messages[0]?.role === "system" ? 1 : 0;
  const next = messages.findIndex(({ role }, index) => index > start && role === "user");
  return next < 0 ? null : [...messages.slice(0, start), ...messages.slice(next)];
}
