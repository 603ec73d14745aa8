/** A branch of a conversation as the messages that the model's template renders. */

import type { ChatMessage } from "../../chat/types.ts";
import type { MessageBody, UserBody } from "./message-body.ts";

export function promptOf(
  branch: readonly { body: MessageBody }[],
  instructions: string | null,
): ChatMessage[] {
  const system: ChatMessage[] =
    instructions === null || instructions.trim() === ""
      ? []
      : [{ role: "system", content: instructions }];
  const said = branch.flatMap(({ body }): ChatMessage[] =>
    body.role === "user" ? [{ role: "user", content: userContent(body) }] : body.transcript,
  );
  return [...system, ...said];
}

/** Files come first: what is asked about them stands where the answer begins. */
export function userContent({ message, files }: Pick<UserBody, "message" | "files">): string {
  const parts = files.map(({ name, text }) => `File ${JSON.stringify(name)}:\n${text}`);
  return [...parts, ...(message.trim() === "" ? [] : [message])].join("\n\n");
}

const titleLength = 60;

/** The first line of what was asked. */
export function titleOf({ message, files }: Pick<UserBody, "message" | "files">): string {
  const line = message.trim().split("\n", 1)[0]!.trim() || (files[0]?.name ?? "");
  const characters = [...line];
  if (characters.length <= titleLength) return line;
  return `${characters.slice(0, titleLength - 1).join("")}…`;
}
