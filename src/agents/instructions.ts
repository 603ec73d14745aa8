import type { ChatMessage } from "../chat/types.ts";

/** Many templates take one system message, and that first: instructions stand before what a client's says. */
export function systemMessages(
  instructions: string,
  messages: readonly ChatMessage[],
): ChatMessage[] {
  if (instructions === "") return [...messages];
  const [first, ...rest] = messages;
  if (first?.role !== "system") return [{ role: "system", content: instructions }, ...messages];
  return [{ role: "system", content: `${instructions}\n\n${first.content}` }, ...rest];
}
