/** `truncation: "auto"`: what does not fit into the context goes, the oldest first. */

import type { ChatMessage } from "../../chat/types.ts";
import { FermataError } from "../../errors.ts";

/**
 * Whole turns go, from one message of the user to the next; of the last turn, whole rounds of calls behind its
 * question. Half of either would be nonsense.
 * @param count throws context_length_exceeded. @throws it, if not even the last round fits
 */
export async function fitHistory(
  messages: ChatMessage[],
  count: (messages: ChatMessage[]) => Promise<number>,
): Promise<ChatMessage[]> {
  if (await fits(messages, count)) return messages;
  const shorter = shorterHistories(messages);
  // Each is a part of the one before it, and to count one takes its time: the first that fits is found by halves.
  let [first, end] = [0, shorter.length];
  while (first < end) {
    const middle = Math.floor((first + end) / 2);
    if (await fits(shorter[middle]!, count)) end = middle;
    else first = middle + 1;
  }
  const found = shorter[first];
  if (found === undefined) await count(shorter.at(-1) ?? messages);
  return found ?? messages;
}

async function fits(
  messages: ChatMessage[],
  count: (messages: ChatMessage[]) => Promise<number>,
): Promise<boolean> {
  try {
    await count(messages);
    return true;
  } catch (error) {
    if (error instanceof FermataError && error.code === "context_length_exceeded") return false;
    throw error;
  }
}

/** The longest first. */
function shorterHistories(messages: readonly ChatMessage[]): ChatMessage[][] {
  const start = messages[0]?.role === "system" ? 1 : 0;
  const head = messages.slice(0, start);
  const questions = indicesOf(messages, "user", start + 1);
  const last = questions.at(-1) ?? start;
  const rounds = indicesOf(messages, "assistant", last + 1).slice(1);
  const question = messages[last]?.role === "user" ? [messages[last]] : [];
  return [
    ...questions.map((at) => [...head, ...messages.slice(at)]),
    ...rounds.map((at) => [...head, ...question, ...messages.slice(at)]),
  ];
}

function indicesOf(
  messages: readonly ChatMessage[],
  role: ChatMessage["role"],
  from: number,
): number[] {
  return messages.flatMap((message, index) =>
    index >= from && message.role === role ? [index] : [],
  );
}
