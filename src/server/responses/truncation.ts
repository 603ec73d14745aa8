/** `truncation: "auto"`: drops the oldest parts that do not fit into the context. */

import type { ChatMessage } from "../../chat/types.ts";
import { FermataError } from "../../errors.ts";

/**
 * Drops whole turns, from one message of the user to the next, then whole rounds of calls of the last turn. Half of
 * either would make no sense.
 * @param count throws context_length_exceeded @throws the same, if even the last round does not fit
 */
export async function fitHistory(
  messages: ChatMessage[],
  count: (messages: ChatMessage[]) => Promise<number>,
): Promise<ChatMessage[]> {
  if (await fits(messages, count)) return messages;
  const cuts = cutsOf(messages);
  const after = ({ head, from }: Cut): ChatMessage[] => [...head, ...messages.slice(from)];
  // Each candidate is a part of the one before it, and counting is slow: a binary search finds the first that fits, and
  // builds only the candidates that it counts.
  let [first, end] = [0, cuts.length];
  while (first < end) {
    const middle = Math.floor((first + end) / 2);
    if (await fits(after(cuts[middle]!), count)) end = middle;
    else first = middle + 1;
  }
  const found = cuts[first];
  if (found !== undefined) return after(found);
  const shortest = cuts.at(-1);
  await count(shortest === undefined ? messages : after(shortest));
  return messages;
}

/** The rest of a history: `head`, and the messages from index `from` on. */
interface Cut {
  head: readonly ChatMessage[];
  from: number;
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
function cutsOf(messages: readonly ChatMessage[]): Cut[] {
  const start = messages[0]?.role === "system" ? 1 : 0;
  const head = messages.slice(0, start);
  const questions = indicesOf(messages, "user", start + 1);
  const last = questions.at(-1) ?? start;
  const rounds = indicesOf(messages, "assistant", last + 1).slice(1);
  const question = messages[last]?.role === "user" ? [messages[last]] : [];
  const headAndQuestion = [...head, ...question];
  return [
    ...questions.map((from) => ({ head, from })),
    ...rounds.map((from) => ({ head: headAndQuestion, from })),
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
