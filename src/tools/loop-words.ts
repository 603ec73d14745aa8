/**
 * What a model that must answer is told, as words of the user: small models read over what stands in a result, or
 * repeat it as their answer. Measured on them: without "in words" they call on, and without the question they tell
 * what the last result says.
 */

import type { ChatRequest } from "../chat/types.ts";

export interface LoopWords {
  /** Tools can no longer be called. */
  last: string;
  /** A call and its result were there before. */
  repeat: string;
}

/** A longer question is not repeated. */
const maxQuestion = 2000;

export function loopWords({
  messages,
  guidance,
}: Pick<ChatRequest, "messages" | "guidance">): LoopWords {
  const form = guidance?.document === undefined ? "in words" : "in the form that was asked for";
  const question = messages.findLast(({ role }) => role === "user")?.content.trim() ?? "";
  const isQuoted = question !== "" && question.length <= maxQuestion;
  const quote = isQuoted ? `\n\nMy question was: ${question}` : "";
  return {
    last: `No more tools can be called. Answer my question now, ${form}, with what the results above say.${quote}`,
    repeat: `The same call gave the same result again. Do something else, or answer my question ${form} with what the results above say.${quote}`,
  };
}
