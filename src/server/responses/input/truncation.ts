/** `truncation: "auto"`: drops the oldest parts that do not fit into the context. */

import type { ChatMessage, PromptRequest } from "../../../chat/types.ts";
import type { Target } from "../../answer/target.ts";
import { countSystems } from "../../../chat/template/normalize.ts";
import { FermataError } from "../../../errors.ts";

/** Of the context, what an answer gets at most before turns are dropped for it. */
const largestRoom = 1 / 4;
/** Tokens of room for an answer whose request sets no limit. */
const usualRoom = 1024;
/** Of the context, how much more is dropped at a time. */
const step = 1 / 4;

export interface Fit {
  contextSize: number;
  /** Tokens that the answer may have. Undefined: the request sets no limit. */
  maxTokens: number | undefined;
  /** Tokens of a prompt, which may be longer than the context. @throws context_length_exceeded: they are too many to count */
  count: (messages: ChatMessage[]) => Promise<number>;
  /** Nobody waits for it any more. */
  signal: AbortSignal | undefined;
}

/**
 * Drops whole turns, from one message of the user to the next, then whole rounds of calls of the last turn. Half of
 * either would make no sense. What is dropped grows in steps, so that the next turns of the conversation are cut at the
 * same place and find their prefix in the KV cache.
 * @returns what is left; it may still be too long, which the generation refuses
 * @throws the reason of an aborted signal
 */
export async function fitHistory(messages: ChatMessage[], fit: Fit): Promise<ChatMessage[]> {
  const { contextSize, maxTokens = usualRoom } = fit;
  const room = Math.max(1, Math.min(maxTokens, Math.floor(contextSize * largestRoom)));
  const limit = contextSize - room;
  const whole = await size(messages, fit);
  if (whole <= limit) return messages;
  const cuts = cutsOf(messages);
  if (cuts.length === 0) return messages;
  const after = ({ head, from }: Cut): ChatMessage[] => [...head, ...messages.slice(from)];
  const steps = Math.ceil((whole - limit) / (contextSize * step));
  const most = Number.isFinite(whole) ? whole - steps * contextSize * step : limit;
  // Each candidate is a part of the one before it, and counting is slow: a binary search finds the first that fits, and
  // builds only the candidates that it counts.
  let [first, end] = [0, cuts.length - 1];
  while (first < end) {
    const middle = Math.floor((first + end) / 2);
    if ((await size(after(cuts[middle]!), fit)) <= most) end = middle;
    else first = middle + 1;
  }
  return after(cuts[first]!);
}

/** Of the messages, those that fit into a prompt. @param promptOf what the model reads of some */
export async function fitted(
  messages: ChatMessage[],
  { chat, contextSize }: Pick<Target, "chat" | "contextSize">,
  {
    promptOf,
    ...fit
  }: Pick<Fit, "maxTokens" | "signal"> & {
    promptOf(some: readonly ChatMessage[]): PromptRequest;
  },
): Promise<ChatMessage[]> {
  const count: Fit["count"] = (some) => chat.countPromptTokens(promptOf(some), { mayExceed: true });
  return await fitHistory(messages, { contextSize, count, ...fit });
}

/** The rest of a history: `head`, and the messages from index `from` on. */
interface Cut {
  head: readonly ChatMessage[];
  from: number;
}

async function size(messages: ChatMessage[], { count, signal }: Fit): Promise<number> {
  signal?.throwIfAborted();
  try {
    return await count(messages);
  } catch (error) {
    if (error instanceof FermataError && error.code === "context_length_exceeded") return Infinity;
    throw error;
  }
}

/** The longest first. */
function cutsOf(messages: readonly ChatMessage[]): Cut[] {
  const start = countSystems(messages);
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
