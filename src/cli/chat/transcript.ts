import type { Conversation } from "../../client/index.ts";
import { branchOf } from "./conversation.ts";

/** The branch that is shown, as Markdown. */
export function transcript(conversation: Conversation): string {
  const parts = branchOf(conversation).map(({ role, message, tool_calls: calls }) => {
    const cards = calls.map(
      ({ tool_name: name, tool_call_details: details, tool_response: response }) =>
        `> \`${name}\` ${details.arguments ?? ""}\n${response.replaceAll(/^/gm, ">     ")}\n\n`,
    );
    return `## ${role === "user" ? "Question" : "Answer"}\n\n${cards.join("")}${message}\n`;
  });
  return `# ${conversation.title || "Conversation"}\n\n${parts.join("\n")}`;
}
