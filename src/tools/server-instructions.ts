/** What MCP servers say about their tools, for the model. */

import type { ChatMessage } from "../chat/types.ts";
import type { Tool } from "./types.ts";

/** With what the servers of the tools say about them. Many templates take one system message, and that first. */
export function instructedMessages(
  messages: readonly ChatMessage[],
  tools: readonly Tool[],
): ChatMessage[] {
  const byServer = new Map(
    tools.flatMap(({ server, serverInstructions: text }) => (text ? [[server, text]] : [])),
  );
  const said = [...byServer].map(([server, text]) => `# About the tools of ${server}\n\n${text}`);
  if (said.length === 0) return [...messages];
  const [first, ...rest] = messages;
  return first?.role === "system"
    ? [
        {
          role: "system",
          content: [first.content, ...said].filter((text) => text !== "").join("\n\n"),
        },
        ...rest,
      ]
    : [{ role: "system", content: said.join("\n\n") }, ...messages];
}
